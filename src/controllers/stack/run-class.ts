import { type PriorityClass, priorityClasses, type Run, type Stack } from '../../api/index.ts'
import type { Want } from './choose-run.ts'

/**
 * The class of a Run in the queue: what the Stack says, else by its cause. Interactive when a person waits for it, Drift for
 * checks of what stands, else Change. A retry of a check stays a check; a lost Run keeps its class; a Run that replaces one
 * that waited is in no lower class than that one.
 */
export function runClass(stack: Stack, want: Want, runs: readonly Run[], superseded: Run | undefined): PriorityClass {
  const own = stack.spec.priorityClass ?? byCause(want, runs)
  const before = superseded?.spec.priorityClass ?? 'Drift'
  return priorityClasses[Math.min(priorityClasses.indexOf(own), priorityClasses.indexOf(before))] ?? own
}

function byCause(want: Want, runs: readonly Run[]): PriorityClass {
  switch (want.reason) {
    case 'Requested':
    case 'Approved':
      return 'Interactive'
    case 'DriftCheck':
      return 'Drift'
    case 'RecoveredFrom':
      return runs.find(run => run.metadata.name === want.recoveredFrom)?.spec.priorityClass ?? 'Change'
    case 'Retry':
      return runs.at(-1)?.spec.priorityClass === 'Drift' ? 'Drift' : 'Change'
    default:
      return 'Change'
  }
}
