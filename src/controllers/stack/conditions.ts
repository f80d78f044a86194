import { type Condition, findCondition, setCondition } from '../../kubernetes/object/index.ts'

export type StackEvent = { type: 'Normal' | 'Warning'; reason: string; message: string }

/** Reason and message of a condition. */
export type ConditionDetail = { readonly reason: string; readonly message: string }

/** The conditions of a Stack by kstatus' conventions. A condition that is absent here is removed from the status. */
export type StackConditions = {
  readonly ready: ConditionDetail & { readonly status: 'True' | 'False' }
  readonly reconciling?: ConditionDetail
  readonly stalled?: ConditionDetail
  readonly awaitingApproval?: ConditionDetail
}

export function readyCondition(reason: string, message: string): StackConditions {
  return { ready: { status: 'True', reason, message } }
}

/** Not Ready, and the controller continues on its own. */
export function reconcilingCondition(reason: string, message: string): StackConditions {
  return { ready: { status: 'False', reason, message }, reconciling: { reason, message } }
}

/** Not Ready, and it stays so until a user changes something. */
export function stalledCondition(reason: string, message: string): StackConditions {
  return { ready: { status: 'False', reason, message }, stalled: { reason, message } }
}

/** Not Ready on purpose: neither reconciling nor stalled. */
export function suspendedCondition(message: string): StackConditions {
  return { ready: { status: 'False', reason: 'Suspended', message } }
}

const ownedTypes = ['Ready', 'Reconciling', 'Stalled', 'AwaitingApproval'] as const

/** The conditions after `previous` are updated, with the events for the transitions. */
export function setConditions(
  previous: readonly Condition[],
  update: StackConditions,
  generation: number,
  nowMs: number,
): { conditions: Condition[]; events: StackEvent[] } {
  const details: Record<(typeof ownedTypes)[number], (ConditionDetail & { status: 'True' | 'False' }) | undefined> = {
    Ready: update.ready,
    Reconciling: update.reconciling && { status: 'True', ...update.reconciling },
    Stalled: update.stalled && { status: 'True', ...update.stalled },
    AwaitingApproval: update.awaitingApproval && { status: 'True', ...update.awaitingApproval },
  }
  let conditions: readonly Condition[] = previous
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
    return old?.status !== 'True' || old.reason !== detail.reason || old.message !== detail.message
  }
  const { stalled, awaitingApproval, reconciling } = update
  if (stalled && isTransition('Stalled', stalled)) events.push({ type: 'Warning', ...stalled })
  if (awaitingApproval && isTransition('AwaitingApproval', awaitingApproval)) events.push({ type: 'Normal', ...awaitingApproval })
  if (reconciling && blockedReasons.has(reconciling.reason) && isTransition('Reconciling', reconciling)) {
    events.push({ type: 'Warning', ...reconciling })
  }
  return { conditions: current, events }
}

// Reasons that may need a user to act. The others (a Run in progress, a retry) have events of their own.
const blockedReasons = new Set(['DependencyNotFound', 'InputNotFound', 'SourceUnavailable', 'DependentsExist'])
