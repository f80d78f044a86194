import { findCondition, isConditionTrue } from '../kubernetes/object/index.ts'
import { isEnded, type Run } from './run.ts'
import type { Stack } from './stack.ts'

/** The state of a Stack in one word, as in the fleet table, the console and the annotation `example.oarlock.dev/expect`. */
export type StackState =
  | 'Pending'
  | 'Working'
  /** A failure that lasts, and that is retried. */
  | 'Failing'
  | 'Ready'
  | 'Drifted'
  | 'AwaitingApproval'
  | 'Failed'
  /** A user has rejected its plan. */
  | 'PlanRejected'
  | 'EngineNotFound'
  | 'Suspended'
  | 'Deleting'

/** The state of a Stack, from its conditions only. Conditions of an older generation do not count. */
export function stackState(stack: Stack): StackState {
  const { metadata, spec, status } = stack
  if (metadata.deletionTimestamp !== undefined) return 'Deleting'
  const isCurrent = status?.observedGeneration === metadata.generation
  if (!status || !isCurrent) return 'Pending'
  const ready = findCondition(status.conditions, 'Ready')
  if (isConditionTrue(status.conditions, 'AwaitingApproval')) return 'AwaitingApproval'
  if (ready?.status === 'True') return 'Ready'
  const stalled = findCondition(status.conditions, 'Stalled')
  if (stalled?.status === 'True')
    return stalled.reason === 'EngineNotFound' || stalled.reason === 'PlanRejected' ? stalled.reason : 'Failed'
  if (ready?.reason === 'Drifted' || ready?.reason === 'ApplyIncomplete') return 'Drifted'
  if (spec.suspend) return 'Suspended'
  return ready?.reason === 'PersistentFailure' ? 'Failing' : 'Working'
}

/** The active Run of a Stack: the newest that has not ended. */
export function activeRun(runs: readonly Run[]): Run | undefined {
  return runs.filter(run => !isEnded(run)).sort((a, b) => b.spec.epoch - a.spec.epoch)[0]
}

/** Reason and message of the most informative condition. */
export function stackMessage(stack: Stack): { reason: string; message: string } {
  const conditions = stack.status?.conditions
  for (const [type, status] of [
    ['Stalled', 'True'],
    ['Ready', 'True'],
    ['Reconciling', 'True'],
    ['Ready', 'False'],
    ['Ready', 'Unknown'],
  ] as const) {
    const condition = findCondition(conditions, type)
    if (condition?.status === status) return { reason: condition.reason, message: condition.message }
  }
  return { reason: 'Pending', message: 'not reconciled yet' }
}
