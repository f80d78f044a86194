import { type Condition, findCondition } from '../kubernetes/object/index.ts'
import { reconcilingPendingReasons } from './pending-reasons.ts'
import { isRunFailureReason, type RunFailureReason } from './run-failure-reasons.ts'
import type { Stack } from './stack.ts'

export type DriftedStatus = Condition['status'] | 'absent'

type State = {
  /** Status of Ready, which every reported Stack has. */
  readonly ready: 'True' | 'False'
  /** The other conditions that are True; with kstatus, Reconciling means InProgress, and Stalled means Failed. Absent conditions are removed. */
  readonly withCondition?: 'Reconciling' | 'Stalled' | 'AwaitingApproval'
  readonly drifted: readonly DriftedStatus[]
  /** Reasons of Ready. Reconciling and Stalled have the same one. */
  readonly reasons: readonly string[]
  /** The reason may also be that of a failed Run or of an error of the source. */
  readonly isFailure?: boolean
}

const any = ['True', 'False', 'Unknown', 'absent'] as const satisfies readonly DriftedStatus[]

/**
 * Which conditions of a Stack may hold together: a status is exactly one of these states. docs/conditions.md has the same table and the reasons for it.
 * Drifted is absent while the Stack is being deleted.
 */
export const stackStates = {
  Ready: { ready: 'True', drifted: ['False', 'absent'], reasons: ['Applied'] },
  Drifted: { ready: 'False', drifted: ['True'], reasons: ['Drifted'] },
  ApplyIncomplete: { ready: 'False', drifted: ['Unknown'], reasons: ['ApplyIncomplete'] },
  AwaitingApproval: { ready: 'False', withCondition: 'AwaitingApproval', drifted: any, reasons: ['AwaitingApproval'] },
  Suspended: { ready: 'False', drifted: any, reasons: ['Suspended'] },
  Reconciling: {
    ready: 'False',
    withCondition: 'Reconciling',
    drifted: any,
    isFailure: true,
    reasons: [
      'Progressing',
      'ResolvingSource',
      'InputNotFound',
      'DependencyNotFound',
      'DependencyNotReady',
      'DependentsExist',
      'Deleting',
      'RunLost',
      'RunInterrupted',
      'RunRejected',
      'PersistentFailure',
      ...reconcilingPendingReasons,
    ],
  },
  Stalled: {
    ready: 'False',
    withCondition: 'Stalled',
    drifted: any,
    isFailure: true,
    reasons: [
      'DependencyCycle',
      'RestoredFromBackup',
      'RunCanceled',
      'PlanRejected',
      'RetriesExhausted',
      'Poisoned',
      'WorkerCrashed',
      'DeletionProtected',
      'NamespaceTerminating',
    ],
  },
} as const satisfies Record<string, State>

export type StackStateName = keyof typeof stackStates
type OwnReason<Name extends StackStateName> = (typeof stackStates)[Name]['reasons'][number]
export type ReconcilingReason = OwnReason<'Reconciling'> | RunFailureReason
export type StalledReason = OwnReason<'Stalled'> | RunFailureReason

/** Reasons of the other conditions, by their status. */
export const driftedReasons = { True: ['DriftFound'], False: ['NoDrift'], Unknown: ['ApplyIncomplete'] } as const
export const approvalReasons = ['Pending', 'Expired', 'Void', 'ConfirmationRequired'] as const
export type ApprovalReason = (typeof approvalReasons)[number]

const states = Object.entries(stackStates) as readonly [StackStateName, State][]

/** The state that the status of a Stack reports; undefined if the combination of conditions is none of {@link stackStates}, or nothing is reported yet. */
export function reportedState({ metadata, status }: Pick<Stack, 'status'> & { metadata: Pick<Stack['metadata'], 'deletionTimestamp'> }) {
  const conditions = status?.conditions ?? []
  const ready = findCondition(conditions, 'Ready')
  if (!ready) return undefined
  const drifted = findCondition(conditions, 'Drifted')
  return states.find(([, state]) => {
    const others = conditions.filter(({ type }) => type !== 'Ready' && type !== 'Drifted')
    return (
      ready.status === state.ready &&
      isReasonOf(state, ready.reason) &&
      (state.withCondition === undefined
        ? others.length === 0
        : others.length === 1 && isCompanion(others[0]!, state.withCondition, ready)) &&
      state.drifted.includes(drifted?.status ?? 'absent') &&
      (drifted === undefined ||
        (metadata.deletionTimestamp === undefined && (driftedReasons[drifted.status] as readonly string[]).includes(drifted.reason)))
    )
  })?.[0]
}

const isReasonOf = ({ reasons, isFailure }: State, reason: string): boolean =>
  reasons.includes(reason) || (isFailure === true && isRunFailureReason(reason))

const isCompanion = ({ type, status, reason }: Condition, expected: string, ready: Condition): boolean =>
  type === expected &&
  status === 'True' &&
  (type === 'AwaitingApproval' ? (approvalReasons as readonly string[]).includes(reason) : reason === ready.reason)
