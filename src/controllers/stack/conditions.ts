import type { ApprovalReason, ReconcilingReason, Stack, StackStatus, StalledReason } from '../../api/index.ts'
import { type Condition, findCondition, setCondition } from '../../kubernetes/object/index.ts'
import { withoutNextAttempt } from './messages.ts'

export type StackEvent = { type: 'Normal' | 'Warning'; reason: string; message: string }

/** Reason and message of a condition. */
export type ConditionDetail = { readonly reason: string; readonly message: string }

/** The conditions of a Stack: one of the states in `api/stack-conditions.ts`. A condition that is absent here is removed from the status. */
export type StackConditions = {
  readonly ready: ConditionDetail & { readonly status: 'True' | 'False' }
  readonly reconciling?: ConditionDetail
  readonly stalled?: ConditionDetail
  readonly awaitingApproval?: ConditionDetail
}

export function readyCondition(message: string): StackConditions {
  return { ready: { status: 'True', reason: 'Applied', message } }
}

/** The inputs are applied, but the resources differ from them, or may. Nothing is retried. */
export function differingCondition(reason: 'Drifted' | 'ApplyIncomplete', message: string): StackConditions {
  return { ready: { status: 'False', reason, message } }
}

/** Not Ready, and the controller continues on its own. */
export function reconcilingCondition(reason: ReconcilingReason, message: string): StackConditions {
  return { ready: { status: 'False', reason, message }, reconciling: { reason, message } }
}

/** Not Ready, and it stays so until a user changes something. */
export function stalledCondition(reason: StalledReason, message: string): StackConditions {
  return { ready: { status: 'False', reason, message }, stalled: { reason, message } }
}

/** Not Ready until a user has approved the plan that the message names. */
export function awaitingApprovalCondition(reason: ApprovalReason, message: string): StackConditions {
  return { ready: { status: 'False', reason: 'AwaitingApproval', message }, awaitingApproval: { reason, message } }
}

/** Not Ready on purpose: neither reconciling nor stalled. */
export function suspendedCondition(message: string): StackConditions {
  return { ready: { status: 'False', reason: 'Suspended', message } }
}

/** True when the current inputs are applied, also if the resources have changed since. */
export function reportsApplied({ ready }: StackConditions): boolean {
  return ready.status === 'True' || ready.reason === 'Drifted' || ready.reason === 'ApplyIncomplete'
}

const ownedTypes = ['Ready', 'Reconciling', 'Stalled', 'AwaitingApproval'] as const

/** The conditions after `previous` are updated, with the events for the transitions. `drifted` is the condition Drifted, which follows from the Runs. */
export function setConditions(
  previous: readonly Condition[],
  update: StackConditions,
  drifted: Condition | undefined,
  generation: number,
  nowMs: number,
): { conditions: Condition[]; events: StackEvent[] } {
  const details: Record<(typeof ownedTypes)[number], (ConditionDetail & { status: 'True' | 'False' }) | undefined> = {
    Ready: update.ready,
    Reconciling: update.reconciling && { status: 'True', ...update.reconciling },
    Stalled: update.stalled && { status: 'True', ...update.stalled },
    AwaitingApproval: update.awaitingApproval && { status: 'True', ...update.awaitingApproval },
  }
  let conditions = withDrifted(previous, drifted)
  for (const type of ownedTypes) {
    const detail = details[type]
    if (detail) conditions = setCondition(conditions, { type, ...detail, observedGeneration: generation }, nowMs)
    else conditions = conditions.filter(condition => condition.type !== type)
  }
  const current = conditions.map(condition =>
    condition.observedGeneration === generation ? condition : { ...condition, observedGeneration: generation },
  )

  const events: StackEvent[] = []
  const isTransition = (type: string, detail: ConditionDetail) => {
    const old = findCondition(previous, type)
    // An attempt that fails as the one before is no event.
    return old?.status !== 'True' || old.reason !== detail.reason || withoutNextAttempt(old.message) !== withoutNextAttempt(detail.message)
  }
  const { stalled, awaitingApproval, reconciling } = update
  if (stalled && isTransition('Stalled', stalled)) events.push({ type: 'Warning', ...stalled })
  if (awaitingApproval && isTransition('AwaitingApproval', awaitingApproval)) {
    events.push({ type: 'Normal', reason: 'AwaitingApproval', message: awaitingApproval.message })
  }
  if (reconciling && blockedReasons.has(reconciling.reason) && isTransition('Reconciling', reconciling)) {
    events.push({ type: 'Warning', ...reconciling })
  }
  return { conditions: current, events }
}

/** The present status of a Stack with other conditions: nothing else can be reported because a write was rejected. */
export function withConditions(
  { metadata, status = {} }: Pick<Stack, 'metadata' | 'status'>,
  update: StackConditions,
  nowMs: number,
): { status: StackStatus; events: StackEvent[] } {
  const { generation = 1, deletionTimestamp } = metadata
  const drifted = deletionTimestamp === undefined ? findCondition(status.conditions, 'Drifted') : undefined
  const { conditions, events } = setConditions(status.conditions ?? [], update, drifted, generation, nowMs)
  return { status: { ...status, conditions, observedGeneration: generation }, events }
}

function withDrifted(conditions: readonly Condition[], drifted: Condition | undefined): readonly Condition[] {
  if (!drifted) return conditions.filter(({ type }) => type !== 'Drifted')
  const isPresent = conditions.some(({ type }) => type === 'Drifted')
  return isPresent ? conditions.map(condition => (condition.type === 'Drifted' ? drifted : condition)) : [...conditions, drifted]
}

// Reasons that may need a user to act. The others (a Run in progress, a retry) have events of their own.
const blockedReasons = new Set(['RunRejected', 'DependencyNotFound', 'InputNotFound', 'SourceUnavailable', 'DependentsExist'])
