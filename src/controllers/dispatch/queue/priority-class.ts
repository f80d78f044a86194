import { type PriorityClass, priorityClasses, type RunSpec } from '../../../api/index.ts'

/** The rank of the priority class; 0 is scheduled first. Default: the rank of Change. */
export function classRank(run: { readonly spec: Pick<RunSpec, 'priorityClass'> }): number {
  return rankOf(run.spec.priorityClass ?? 'Change')
}

function rankOf(priorityClass: PriorityClass): number {
  return priorityClasses.indexOf(priorityClass)
}
