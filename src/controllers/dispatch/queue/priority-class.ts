import { type PriorityClass, priorityClasses, type RunSpec } from '../../../api/index.ts'

/** 0 goes first. A Run that says nothing goes as Change. */
export function classRank(run: { readonly spec: Pick<RunSpec, 'priorityClass'> }): number {
  return rankOf(run.spec.priorityClass ?? 'Change')
}

export function rankOf(priorityClass: PriorityClass): number {
  return priorityClasses.indexOf(priorityClass)
}
