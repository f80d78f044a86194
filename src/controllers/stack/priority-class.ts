import { type PriorityClass, priorityClasses, type Run, type Stack } from '../../api/index.ts'
import type { PlannedRun } from './choose-run.ts'

/**
 * The priority class of a Run: the Stack's `priorityClass`, else by the reason of the Run. Interactive when a user waits for
 * it, Drift for drift checks, else Change. A retried check stays a check, and a Run that continues a lost one keeps its class.
 * A Run that takes the place of another in the queue is never in a lower class than that one.
 */
export function priorityClassOf(stack: Stack, planned: PlannedRun, runs: readonly Run[], replaced: Run | undefined): PriorityClass {
  const own = stack.spec.priorityClass ?? classByReason(planned, runs)
  const previous = replaced?.spec.priorityClass ?? 'Drift'
  return priorityClasses[Math.min(priorityClasses.indexOf(own), priorityClasses.indexOf(previous))] ?? own
}

function classByReason(planned: PlannedRun, runs: readonly Run[]): PriorityClass {
  switch (planned.reason) {
    case 'Requested':
    case 'Approved':
      return 'Interactive'
    case 'DriftCheck':
      return 'Drift'
    case 'RecoveredFrom':
      return runs.find(run => run.metadata.name === planned.recoveredFrom)?.spec.priorityClass ?? 'Change'
    case 'Retry':
      return runs.at(-1)?.spec.priorityClass === 'Drift' ? 'Drift' : 'Change'
    default:
      return 'Change'
  }
}
