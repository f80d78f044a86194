/** The steps of the sequence that only exist for operations that are dispatched to workers. */
import { annotations, createTimesOf, isCreationIncomplete, nextMark, requestTokenOf } from '../annotations.ts'
import { hasDetails } from '../has-details.ts'
import type { ManagedObject } from '../managed-object.ts'
import type { End, Facts, Settings, Step } from '../step.ts'
import type { OperationKind } from './operation.ts'

/** How often a creation that had no effect is repeated, and how long after its end the first time: doubling. */
const creationRetries = 5
const retryInitialMs = 5_000

/** How soon an operation that has succeeded without the effect that was wanted is repeated, at the least. */
const repeatAfterMs = 60_000

/** Whether the Stack must be read: it may have an operation that is active, or whose result is not known here. */
export function mayHaveOperation(object: ManagedObject): boolean {
  const { run } = object.status ?? {}
  return isCreationIncomplete(createTimesOf(object)) || (run !== undefined && run.phase !== 'Succeeded')
}

/** Whether the creation that is marked as pending was never dispatched: the Stack exists and has another operation. */
export function isNotBegun({ object, operation }: Facts): boolean {
  return operation !== undefined && operation.operation.mark !== object.metadata.annotations?.[annotations.createPending]
}

/**
 * What follows from an operation of the resource: nothing is started while one is active, and its result is recorded once. Undefined if the sequence
 * continues as it does without one.
 */
export function decideAfterOperation(facts: Facts, nowMs: number): Step | undefined {
  const { operation: state, object, done } = facts
  if (!state) return undefined
  const { operation, outcome, isHandled } = state
  if (outcome.kind === 'active') return activeEnd(facts, operation.kind, outcome)
  if (isHandled || done.has('finish-operation')) return undefined
  const isCreation = operation.kind === 'create'
  const times = createTimesOf(object)
  if (outcome.kind === 'succeeded') {
    if (isCreation && !done.has('mark-result')) {
      const name = facts.change?.externalName
      return {
        kind: 'mark-result',
        annotations: { [annotations.createSucceeded]: nextMark(times, nowMs), ...(name && { [annotations.externalName]: name }) },
      }
    }
    if (hasDetails(facts.change) && !done.has('publish-changed')) return { kind: 'publish-changed' }
    return { kind: 'finish-operation' }
  }
  // One with an unknown result stays marked as pending.
  if (isCreation && outcome.kind === 'failed' && !done.has('mark-result')) {
    return { kind: 'mark-result', annotations: { [annotations.createFailed]: nextMark(times, nowMs) } }
  }
  return { kind: 'finish-operation' }
}

const requested: Readonly<Record<OperationKind, { readonly reason: string; readonly noun: string }>> = {
  create: { reason: 'CreatedExternalResource', noun: 'creation' },
  update: { reason: 'UpdatedExternalResource', noun: 'update' },
  delete: { reason: 'DeletedExternalResource', noun: 'deletion' },
}

function activeEnd(
  { object: { metadata }, done }: Facts,
  kind: OperationKind,
  { message, isFailing }: { readonly message: string; readonly isFailing: boolean },
): End {
  const isDeleting = metadata.deletionTimestamp !== undefined
  const reason = isDeleting ? 'Deleting' : kind === 'create' ? 'Creating' : 'Updating'
  const synced = isFailing
    ? { status: 'False' as const, reason: 'ReconcileError', message }
    : { status: 'True' as const, reason: 'ReconcileSuccess', message: '' }
  const { reason: eventReason, noun } = requested[kind]
  const event = { type: 'Normal' as const, reason: eventReason, message: `requested the ${noun} of the external resource` }
  // The end of a Run is seen by a watch.
  return {
    ...{ kind: 'end', synced, ready: { status: 'False', reason, message }, requeue: { afterMs: activePollMs } },
    ...(done.has(kind) && { event }),
  }
}

/** The watch shows every change; this is for one that it missed. */
const activePollMs = 60_000

/** Whether an operation of this kind may be started now, after what became of the last one. */
export type StartDecision =
  | { readonly kind: 'start'; readonly failures: number }
  /** `afterMs` undefined: only a change of the resource, or a request. */
  | { readonly kind: 'blocked'; readonly problem: string | undefined; readonly afterMs: number | undefined }

export function decideStart(facts: Facts, kind: OperationKind, settings: Settings, nowMs: number): StartDecision {
  const { operation: state, object } = facts
  if (!state || state.operation.kind !== kind || state.operation.generation !== (object.metadata.generation ?? 0)) {
    return { kind: 'start', failures: 0 }
  }
  const token = requestTokenOf(object)
  if (token && token !== object.status?.lastHandledReconcileAt) return { kind: 'start', failures: 0 }
  const { outcome, operation } = state
  if (outcome.kind === 'active') return { kind: 'blocked', problem: undefined, afterMs: undefined }
  if (outcome.kind === 'succeeded') {
    const atMs = outcome.atMs + Math.min(repeatAfterMs, settings.pollIntervalMs)
    return atMs <= nowMs ? { kind: 'start', failures: 0 } : { kind: 'blocked', problem: undefined, afterMs: atMs - nowMs }
  }
  // A person has looked for what an unknown creation made, and removed its mark.
  if (kind === 'create' && outcome.kind === 'unknown' && !operation.isRepeatable) return { kind: 'start', failures: 0 }
  const failures = operation.failures + 1
  const request = `change the ${object.kind}, or request another attempt: kubectl annotate --overwrite ${object.kind.toLowerCase()} ${object.metadata.name} -n ${object.metadata.namespace} ${annotations.reconcileRequestedAt}="$(date)"`
  if (outcome.isFinal || failures > creationRetries)
    return { kind: 'blocked', problem: `${outcome.message}; ${request}`, afterMs: undefined }
  const atMs = outcome.atMs + retryInitialMs * 2 ** operation.failures
  return atMs <= nowMs ? { kind: 'start', failures } : { kind: 'blocked', problem: outcome.message, afterMs: atMs - nowMs }
}
