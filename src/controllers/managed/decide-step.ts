/**
 * The sequence of one reconcile of a managed resource, as a pure decision: from what is known to the one next step. The shell executes
 * the step, adds its result to the facts, and asks again until the answer is `end`. The order is that of Crossplane's managed reconciler
 * (crossplane-runtime v2.5, pkg/reconciler/managed); where it differs, a comment explains it.
 *
 * Guarantees, whose numbers tests cite:
 * 1. `create` is called only after `external-create-pending` was written at the version of the object that was read.
 * 2. While the result of a creation is not known, `create` is not called again, unless names are deterministic; the condition reports it.
 * 3. No external call begins without the lock, nor after leadership was lost. A call that was begun before may still arrive.
 * 4. An operation that is dispatched is started once; of the Runs of one that must not be repeated, all but the first refuse.
 * 5. The finalizer is removed only after an observation that found nothing, unless the policies leave the external resource.
 */
import { findCondition, rfc3339 } from '../../kubernetes/object/index.ts'
import {
  annotations,
  createTimesOf,
  externalNameOf,
  isCreationIncomplete,
  isPausedByAnnotation,
  nextMark,
  pollIntervalOf,
} from './annotations.ts'
import { decideAfterOperation, decideStart, isNotBegun, mayHaveOperation } from './dispatch/decide-dispatched-step.ts'
import type { OperationKind } from './dispatch/operation.ts'
import { hasDetails } from './has-details.ts'
import type { Observation } from './managed-object.ts'
import { decidePolicy } from './management-policies.ts'
import type { ConditionPart, End, Facts, Failure, Settings, Step } from './step.ts'

export const managedFinalizer = 'finalizer.managedresource.crossplane.io'

/** How much the clocks of two replicas may differ. */
const clockToleranceMs = 60_000

const success: ConditionPart = { status: 'True', reason: 'ReconcileSuccess', message: '' }
const paused: ConditionPart = {
  status: 'False',
  reason: 'ReconcilePaused',
  message: 'reconciliation is paused by spec.managementPolicies or the annotation crossplane.io/paused',
}
const creating: ConditionPart = { status: 'False', reason: 'Creating', message: '' }
const deleting: ConditionPart = { status: 'False', reason: 'Deleting', message: '' }

const synced = (message: string): ConditionPart => ({ ...success, message })
const failed = (message: string): ConditionPart => ({ status: 'False', reason: 'ReconcileError', message })
const warning = (reason: string, message: string) => ({ type: 'Warning', reason, message }) as const
const normal = (reason: string, message: string) => ({ type: 'Normal', reason, message }) as const

/** What a failed step is called in messages and Events. */
const failures: Partial<Record<Step['kind'], { readonly text: string; readonly event: string }>> = {
  pause: { text: 'cannot pause the external resource', event: 'CannotPauseExternalResource' },
  'set-external-name': { text: 'cannot write the external name', event: 'CannotInitializeManagedResource' },
  'resolve-references': { text: 'cannot resolve references', event: 'CannotResolveResourceReferences' },
  connect: { text: 'connect failed', event: 'CannotConnectToProvider' },
  observe: { text: 'observe failed', event: 'CannotObserveExternalResource' },
  'publish-observed': { text: 'cannot publish connection details', event: 'CannotPublishConnectionDetails' },
  'publish-changed': { text: 'cannot publish connection details', event: 'CannotPublishConnectionDetails' },
  unpublish: { text: 'cannot delete the connection details', event: 'CannotUnpublishConnectionDetails' },
  'mark-pending': { text: 'cannot mark the creation as pending', event: 'CannotUpdateManagedResource' },
  'read-operation': { text: 'cannot read the dispatched operation', event: 'CannotReadOperation' },
  'finish-operation': { text: 'cannot finish the dispatched operation', event: 'CannotFinishOperation' },
  create: { text: 'create failed', event: 'CannotCreateExternalResource' },
  'mark-result': { text: 'cannot write the result of the creation', event: 'CannotUpdateManagedResource' },
  'late-initialize': { text: 'cannot write late-initialized fields', event: 'CannotUpdateManagedResource' },
  update: { text: 'update failed', event: 'CannotUpdateExternalResource' },
  delete: { text: 'delete failed', event: 'CannotDeleteExternalResource' },
}

/** Decides the next step. `nowMs` is wall time; `random` in [0, 1) spreads polls. */
export function decideStep(facts: Facts, settings: Settings, nowMs: number, random: number): Step {
  const { object, done, observation, failure } = facts
  const { metadata, spec } = object
  const isDeleting = metadata.deletionTimestamp !== undefined
  const times = createTimesOf(object)

  if (failure) return afterFailure(facts, settings, failure, nowMs)

  const policy = decidePolicy(spec?.managementPolicies, spec?.deletionPolicy)
  if (policy.kind === 'paused' || isPausedByAnnotation(object)) {
    if (settings.pauses && !done.has('pause')) return { kind: 'pause' }
    return { kind: 'end', synced: paused, requeue: 'never', event: normal('ReconciliationPaused', paused.message) }
  }
  if (policy.kind === 'invalid') {
    const { message } = policy
    return { kind: 'end', synced: failed(message), requeue: 'never', event: warning('InvalidManagementPolicies', message) }
  }
  const may = policy.permissions
  if (settings.dispatched.size > 0) {
    if (!done.has('read-operation') && mayHaveOperation(object)) return { kind: 'read-operation' }
    const step = decideAfterOperation(facts, nowMs)
    if (step) return step
  }
  if (isDeleting && !may.delete) return forget(facts)

  if (!externalNameOf(object) && !settings.assignsExternalNames) return { kind: 'set-external-name', externalName: metadata.name }

  if (isCreationIncomplete(times) && !done.has('mark-pending') && !settings.hasDeterministicNames && !isNotBegun(facts)) {
    const message = incompleteMessage(facts)
    return {
      kind: 'end',
      synced: failed(message),
      ready: isDeleting ? deleting : creating,
      requeue: 'never',
      event: warning('CannotDetermineCreationResult', message),
    }
  }

  if (!isDeleting && settings.hasReferences && !done.has('resolve-references')) return { kind: 'resolve-references' }
  if (!done.has('connect')) return { kind: 'connect' }
  if (!observation) return { kind: 'observe' }

  const intervalMs = pollIntervalOf(object, { defaultMs: settings.pollIntervalMs, minimumMs: settings.minimumPollIntervalMs })
  // Only earlier: the interval is the longest time between two observations.
  const poll = { afterMs: Math.round(intervalMs * (0.9 + 0.1 * random)) }
  const ready = readinessOf(observation)
  const outcome = outcomeOf(facts, observation)

  if (!observation.exists && policy.isObserveOnly && !isDeleting) {
    const message = 'observe failed: the external resource does not exist, and spec.managementPolicies permits only to observe it'
    return { kind: 'end', synced: failed(message), ready, requeue: poll, event: warning('CannotObserveExternalResource', message) }
  }
  const graceLeftMs = times.succeededMs + settings.creationGraceMs - nowMs
  // A time far in the future is not believed: an annotation may be edited, and a mark is later than the one before it.
  if (!observation.exists && !done.has('create') && graceLeftMs > 0 && graceLeftMs <= settings.creationGraceMs + clockToleranceMs) {
    const message = 'waiting until the created external resource is found'
    return {
      kind: 'end',
      synced: synced(message),
      ready: isDeleting ? deleting : creating,
      requeue: { afterMs: graceLeftMs },
      event: normal('PendingExternalResource', message),
    }
  }

  if (isDeleting) {
    const others = (metadata.finalizers ?? []).filter(name => name !== managedFinalizer)
    // Crossplane tries again after a while; the removal of a finalizer is a change of the object, so that is not needed.
    if (others.length > 0) {
      return { kind: 'end', synced: synced(`waiting for other finalizers: ${others.join(', ')}`), ready: deleting, requeue: 'never' }
    }
    if (!observation.exists) return forget(facts)
    if (!done.has('delete')) {
      return begin(facts, settings, 'delete', nowMs, { ready: deleting, requeue: { afterMs: settings.deletionCheckMs } })
    }
    const event = normal('DeletedExternalResource', 'requested the deletion of the external resource')
    const message = typeof observation.ready === 'object' && observation.ready.reason === 'Deleting' ? observation.ready.message : ''
    return { kind: 'end', event, ...outcome, ready: { ...deleting, message }, requeue: { afterMs: settings.deletionCheckMs } }
  }

  if (!done.has('publish-observed') && hasDetails(observation)) return { kind: 'publish-observed' }
  if (!metadata.finalizers?.includes(managedFinalizer)) return { kind: 'add-finalizer' }

  if (!observation.exists) {
    // Crossplane would update what does not exist.
    if (!may.create) {
      const message = 'the external resource does not exist, and spec.managementPolicies does not permit to create it'
      return { kind: 'end', synced: failed(message), ready, requeue: poll, event: warning('CannotCreateExternalResource', message) }
    }
    const step = begin(facts, settings, 'create', nowMs, { ready, requeue: poll })
    if (!done.has('create') && step.kind !== 'create') return step
    if (!done.has('mark-pending')) {
      const fence = facts.fence === undefined ? undefined : { [annotations.createFence]: String(facts.fence) }
      return { kind: 'mark-pending', annotations: { [annotations.createPending]: nextMark(times, nowMs), ...fence } }
    }
    if (!done.has('create')) return step
    if (!done.has('mark-result')) {
      const name = facts.change?.externalName
      return {
        kind: 'mark-result',
        annotations: { [annotations.createSucceeded]: nextMark(times, nowMs), ...(name && { [annotations.externalName]: name }) },
      }
    }
    if (!done.has('publish-changed') && hasDetails(facts.change)) return { kind: 'publish-changed' }
    return {
      kind: 'end',
      synced: success,
      ready: creating,
      requeue: { afterMs: 0 },
      event: normal('CreatedExternalResource', 'requested the creation of the external resource'),
    }
  }

  if (facts.lateInitialized && may.lateInitialize && !done.has('late-initialize')) {
    return { kind: 'late-initialize', fields: facts.lateInitialized }
  }
  if (observation.isUpToDate ?? true) return { kind: 'end', ...outcome, ready, requeue: poll }
  if (!may.update) {
    const differs = observation.diff ? `: ${observation.diff}` : ''
    return {
      kind: 'end',
      synced: synced(`spec.managementPolicies does not permit an update of what differs${differs}`),
      ...(observation.problem !== undefined && outcome),
      ready,
      requeue: poll,
    }
  }
  if (!done.has('update')) return begin(facts, settings, 'update', nowMs, { ready, requeue: poll })
  if (!done.has('publish-changed') && hasDetails(facts.change)) return { kind: 'publish-changed' }
  return {
    kind: 'end',
    synced: success,
    ready,
    requeue: poll,
    event: normal('UpdatedExternalResource', 'requested the update of the external resource'),
  }
}

/** The step that makes a change; of one that is dispatched, its last operation is read first, and may forbid it for now. */
function begin(facts: Facts, settings: Settings, kind: OperationKind, nowMs: number, otherwise: Pick<End, 'ready' | 'requeue'>): Step {
  if (!settings.dispatched.has(kind)) return { kind }
  if (!facts.done.has('read-operation')) return { kind: 'read-operation' }
  const start = decideStart(facts, kind, settings, nowMs)
  if (start.kind === 'start') return { kind, failures: start.failures }
  const requeue = start.afterMs === undefined ? otherwise.requeue : { afterMs: start.afterMs }
  return { kind: 'end', ...outcomeOf(facts, start), ...otherwise, requeue }
}

/** Nothing external is left to do: connection details go, then the finalizer, and with it the object. */
function forget({ object, done }: Facts): Step {
  if (!object.metadata.finalizers?.includes(managedFinalizer)) {
    return done.has('remove-finalizer') ? { kind: 'end', requeue: 'never', isGone: true } : { kind: 'end', requeue: 'never' }
  }
  return done.has('unpublish') ? { kind: 'remove-finalizer' } : { kind: 'unpublish' }
}

function afterFailure(facts: Facts, { dispatched }: Settings, { step, message, kind }: Failure, nowMs: number): Step {
  const { object, done } = facts
  // The object that this pass was decided from is outdated: the next one is decided from the newer version.
  const isCall = step === 'create' && !dispatched.has('create')
  if (kind === 'conflict' && !isCall && step !== 'mark-result') return { kind: 'end', requeue: 'backoff' }
  const { text, event } = failures[step] ?? { text: `${step} failed`, event: 'ReconcileError' }
  const isCreation = step === 'create' || step === 'mark-result' || step === 'mark-pending'
  const shown = `${text}: ${message}`
  const end: End = {
    kind: 'end',
    synced: failed(shown),
    ready: object.metadata.deletionTimestamp ? deleting : isCreation ? creating : facts.observation && readinessOf(facts.observation),
    requeue: 'backoff',
    event: warning(event, shown),
  }
  if (step !== 'create' || done.has('mark-result')) return end
  // Crossplane marks every error as failed. A call that was given up may have made something: the mark stays pending, and the next
  // reconcile refuses to create again unless names are deterministic.
  if (kind === 'unknown') return end
  return { kind: 'mark-result', annotations: { [annotations.createFailed]: nextMark(createTimesOf(object), nowMs) } }
}

function readinessOf({ exists, ready }: Observation): ConditionPart {
  if (typeof ready === 'object') return { status: 'False', ...ready }
  if (ready ?? exists) return { status: 'True', reason: 'Available', message: '' }
  return { status: 'False', reason: 'Unavailable', message: exists ? '' : 'the external resource does not exist' }
}

/** Whether earlier changes had their effect. An Event for a failure, once. */
function outcomeOf({ object }: Facts, { problem }: { readonly problem?: string | undefined }): Pick<End, 'synced' | 'event'> {
  if (problem === undefined) return { synced: success }
  const isKnown = findCondition(object.status?.conditions, 'Synced')?.message === problem
  return { synced: failed(problem), ...(!isKnown && { event: warning('ExternalResourceFailed', problem) }) }
}

/** What a person can do about a creation whose result is not known. */
function incompleteMessage({ object, operation }: Facts): string {
  const { outcome } = operation ?? {}
  const { pendingMs } = createTimesOf(object)
  const { name, namespace } = object.metadata
  const target = `${object.kind.toLowerCase()} ${name}${namespace ? ` -n ${namespace}` : ''}`
  return (
    `${outcome?.kind === 'unknown' ? `${outcome.message}; ` : ''}the result of the creation that began at ${rfc3339(pendingMs)} is not known: look for the external resource; if it exists, set the annotation ` +
    `${annotations.externalName} to its name; then remove the mark: kubectl annotate ${target} ${annotations.createPending}-`
  )
}
