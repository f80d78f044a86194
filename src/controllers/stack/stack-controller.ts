import { annotations, isEnded, labels, type Run, type RunSpec, runResource, type Stack, stackResource } from '../../api/index.ts'
import {
  addFinalizer,
  type Controller,
  controller,
  EventRecorder,
  type Informer,
  type Manager,
  type Predicate,
  patchStatusIfChanged,
  type ReconcileRequest,
  type Result,
  removeFinalizer,
  watching,
} from '../../kubernetes/controller/index.ts'
import {
  controllerReference,
  describeResource,
  equalJson,
  findCondition,
  isReason,
  type KubeObject,
  objectKey,
  type Resource,
  rfc3339,
  type StatusCause,
} from '../../kubernetes/object/index.ts'
import { pendingRequest } from './choose-run.ts'
import { stackFinalizer } from './constants.ts'
import { decideStack } from './decide-stack.ts'
import type { StackDecision } from './decision.ts'
import { dependencyNames, findCycle } from './dependencies.ts'
import { type KeyDigests, referencedInputs, resolveInputs, withoutValues } from './inputs-digest.ts'
import { jitterOf } from './jitter.ts'
import { isNamespaceTerminating, namespaceTerminating } from './namespace-terminating.ts'
import { RevisionCache } from './revision-cache.ts'
import { stackLabel } from './run-name.ts'
import { specErrors } from './spec-errors.ts'

export type StackControllerOptions = {
  /** Resolves the current revision of a Stack's source; rejects with `{ reason, message, retryable }`. */
  resolveRevision(stack: Stack): Promise<string>
  /** Errors in a Stack's source that can be found without reading it. */
  checkSource(stack: Stack): StatusCause[]
  /** Deletes the stored data (states, plans) of a deleted Stack. Not called for `deletion: Orphan`, which keeps the resources. */
  removeStackData?(stackUid: string): Promise<void>
  /** Wall clock in milliseconds. */
  nowMs?: () => number
  /** Maximum number of concurrent reconciles, most of which wait for a write; default 64. */
  maxConcurrent?: number
}

/** How long a reconcile waits for the revision of a source; a slower lookup triggers another reconcile. */
const lookupTimeoutMs = 20

/** Delay before the next reconcile when the caches lagged behind the server. */
const staleCacheRetryMs = 20

type StackBody = { spec: Stack['spec']; status?: Stack['status'] }
type RunBody = { spec: Run['spec']; status?: Run['status'] }

const core = { group: '', version: 'v1', scope: 'Namespaced' } as const
const secretResource: Resource<KeyDigests> = describeResource({ ...core, kind: 'Secret', plural: 'secrets' })
const configMapResource: Resource<KeyDigests> = describeResource({ ...core, kind: 'ConfigMap', plural: 'configmaps' })

/** Adds the controller that creates Runs for Stacks and writes their status. */
export function addStackController(manager: Manager, options: StackControllerOptions): void {
  manager.add(new StackReconciler(manager, options).controller)
}

/** The shell around {@link decideStack}: reads caches and executes the decision in an order that survives a crash after each step. */
class StackReconciler {
  readonly controller: Controller
  readonly #manager: Manager
  readonly #options: StackControllerOptions
  readonly #stacks: Informer<StackBody>
  readonly #runs: Informer<RunBody>
  readonly #secrets: Informer<KeyDigests>
  readonly #configMaps: Informer<KeyDigests>
  readonly #revisions: RevisionCache
  readonly #events: EventRecorder
  readonly #nowMs: () => number
  /** Uids of Stacks whose finalizer was removed and that are still in the cache: nothing is left to do for them. */
  readonly #released = new Set<string>()
  /** By key: the resourceVersion at which a status write conflicted, until the cache has a newer one. */
  readonly #conflictedAt = new Map<string, string>()

  constructor(manager: Manager, options: StackControllerOptions) {
    this.#manager = manager
    this.#options = options
    this.#nowMs = options.nowMs ?? Date.now
    this.#events = new EventRecorder({ client: manager.leaderClient, component: 'oarlock-stack' })
    const indexes = {
      dependsOn: (stack: KubeObject<StackBody>) => dependencyNames(stack.spec).map(name => `${stack.metadata.namespace}/${name}`),
      referencedInputs: (stack: KubeObject<StackBody>) => referencedInputs(stack.spec).map(name => `${stack.metadata.namespace}/${name}`),
    }
    this.#stacks = manager.informer(stackResource, { indexes })
    this.#runs = manager.informer(runResource, { indexes: { stackUid: run => [run.spec.stackRef.uid] } })
    this.#secrets = manager.informer(secretResource, { transform: withoutValues })
    this.#configMaps = manager.informer(configMapResource, { transform: withoutValues })
    this.#revisions = new RevisionCache({
      resolve: options.resolveRevision,
      onResolved: stack => this.controller.enqueue(objectKey(stack)),
      nowMs: this.#nowMs,
    })
    const usersOf = (kind: string) => (object: KubeObject<KeyDigests>) =>
      this.#stacks.byIndex('referencedInputs', `${object.metadata.namespace}/${kind}/${object.metadata.name}`).map(objectKey)
    this.controller = controller({
      name: 'stack',
      for: stackResource,
      predicates: [needsReconcile],
      owns: [runResource],
      watches: [
        watching(stackResource, stack => this.#relatedStacks(stack), { predicate: isRelevantToRelatedStacks }),
        watching(secretResource, usersOf('secret'), { predicate: haveKeysChanged, informer: { transform: withoutValues } }),
        watching(configMapResource, usersOf('configMap'), { predicate: haveKeysChanged, informer: { transform: withoutValues } }),
      ],
      maxConcurrent: options.maxConcurrent ?? 64,
      backoff: { maxDelayMs: 30_000 },
      reconcile: request => this.#reconcile(request),
    })
    this.#stacks.onChange({
      deleted: ({ metadata }) => {
        this.#revisions.delete(metadata.uid)
        this.#released.delete(metadata.uid)
        this.#conflictedAt.delete(objectKey({ metadata }))
      },
    })
  }

  #relatedStacks(stack: KubeObject<StackBody>): string[] {
    const { namespace } = stack.metadata
    const dependents = this.#stacks.byIndex('dependsOn', objectKey(stack)).map(objectKey)
    return [...dependents, ...dependencyNames(stack.spec).map(name => `${namespace}/${name}`)]
  }

  async #reconcile({ key, namespace = '' }: ReconcileRequest): Promise<Result> {
    const stack = this.#stacks.get(key)
    if (!stack || this.#released.has(stack.metadata.uid)) return
    // A write would conflict again.
    if (this.#conflictedAt.get(key) === stack.metadata.resourceVersion) return { requeueAfterMs: staleCacheRetryMs }
    this.#conflictedAt.delete(key)
    const inNamespace = (name: string) => this.#stacks.get(`${namespace}/${name}`)
    const inputs = resolveInputs(
      stack.spec,
      {
        secret: name => this.#secrets.get(`${namespace}/${name}`),
        configMap: name => this.#configMaps.get(`${namespace}/${name}`),
        stack: inNamespace,
      },
      namespace,
    )
    const causes = [...specErrors(stack.spec), ...this.#options.checkSource(stack)]
    const { revision, recheckAfterMs } =
      causes.length > 0 ? { revision: undefined, recheckAfterMs: undefined } : await this.#revisionOf(stack)
    const decision = decideStack({
      stack,
      runs: await this.#runsOf(stack),
      dependencies: dependencyNames(stack.spec).map(name => ({ name, stack: inNamespace(name) })),
      dependents: this.#stacks.byIndex('dependsOn', key).map(({ metadata }) => metadata.name),
      cycle: findCycle(stack.metadata.name, name => inNamespace(name)?.spec),
      specErrors: causes,
      inputErrors: inputs.errors,
      revision,
      inputsDigest: inputs.digest,
      nowMs: this.#nowMs(),
      jitter: jitterOf(stack.metadata.uid),
    })
    try {
      await this.#act(stack, decision)
    } catch (error) {
      // The caches lagged: decide again with the current objects, which the watch delivers within milliseconds.
      if (isReason(error, 'Conflict') || error instanceof RunExistsError) return { requeueAfterMs: staleCacheRetryMs }
      if (!isNamespaceTerminating(error)) throw error
      // The deletion of a namespace cannot be undone: only a change of the Stack helps, and the watch reports it.
      const present = this.#stacks.get(key) ?? stack
      await this.#act(present, { ...namespaceTerminating(present, this.#nowMs()), deleteRuns: [] })
      return undefined
    }
    const delays = [decision.requeueAfterMs, recheckAfterMs].filter(ms => ms !== undefined)
    return delays.length > 0 ? { requeueAfterMs: Math.min(...delays) } : undefined
  }

  async #revisionOf(stack: Stack): Promise<ReturnType<RevisionCache['get']>> {
    const get = () => this.#revisions.get(stack, pendingRequest(stack, stack.status ?? {})?.value)
    const cached = get()
    if (cached.revision !== undefined) return cached
    // An inline source is resolved within this time, which saves a status write with reason ResolvingSource.
    await this.#revisions.waitForLookup(stack.metadata.uid, lookupTimeoutMs)
    return get()
  }

  /**
   * The Stack's Runs. If the active one that the status names is not in the cache, it is read from the server: one cache may
   * lag behind the other, and a Run mistaken for deleted would get a second active one (invariant 1).
   */
  async #runsOf(stack: Stack): Promise<Run[]> {
    const { uid, namespace } = stack.metadata
    const runs = this.#runs.byIndex('stackUid', uid)
    const { lastRun } = stack.status ?? {}
    if (!lastRun || isEnded({ status: { phase: lastRun.phase } } as Run) || runs.some(run => run.metadata.name === lastRun.name))
      return runs
    const live = await this.#manager.leaderClient.resource(runResource).getOrUndefined(lastRun.name, { namespace })
    if (live?.spec.stackRef.uid !== uid) return runs
    this.#runs.applyLocal(live)
    return [...runs, live]
  }

  async #act(stack: Stack, decision: StackDecision): Promise<void> {
    const stacks = this.#manager.leaderClient.resource(stackResource)
    let present = stack
    if (decision.addFinalizer) {
      present = await addFinalizer(stacks, present, stackFinalizer)
      this.#stacks.applyLocal(present)
    }
    if (decision.supersedeRun) await this.#supersede(stack, decision.supersedeRun)
    if (decision.createRun) await this.#create(stack, decision.createRun)
    if (decision.cancelRun) await this.#cancel(stack, decision.cancelRun)
    if (decision.removeFinalizer) {
      await this.#release(present, decision)
      return
    }

    if (!equalJson(present.status ?? {}, decision.status)) {
      const { resourceVersion } = present.metadata
      try {
        present = await patchStatusIfChanged(stacks, present, decision.status)
      } catch (error) {
        if (isReason(error, 'Conflict')) this.#conflictedAt.set(objectKey(stack), resourceVersion)
        throw error
      }
      this.#stacks.applyLocal(present)
    }
    // Events are sent and Runs deleted only after the status that includes them is written.
    this.#recordEvents(stack, decision)
    await Promise.all(decision.deleteRuns.map(name => this.#delete(stack, name)))
  }

  async #release(stack: Stack, decision: StackDecision): Promise<void> {
    this.#recordEvents(stack, decision)
    if (stack.spec.deletion !== 'Orphan') await this.#options.removeStackData?.(stack.metadata.uid)
    const released = await removeFinalizer(this.#manager.leaderClient.resource(stackResource), stack, stackFinalizer)
    this.#revisions.delete(stack.metadata.uid)
    // With other finalizers the object still exists.
    if (released.metadata.finalizers?.length) this.#stacks.applyLocal(released)
    else if (this.#stacks.has(objectKey(stack))) this.#released.add(stack.metadata.uid)
  }

  #recordEvents(stack: Stack, { events }: StackDecision): void {
    for (const { type, reason, message } of events) this.#events.record(stack, type, reason, message)
  }

  async #create(stack: Stack, { name, spec }: { name: string; spec: RunSpec }): Promise<void> {
    const runs = this.#manager.leaderClient.resource(runResource)
    const { namespace } = stack.metadata
    const owner = controllerReference({ ...stack, apiVersion: stackResource.apiVersion, kind: stackResource.kind })
    const metadata = { name, namespace, labels: { [labels.stack]: stackLabel(stack.metadata.name) }, ownerReferences: [owner] }
    try {
      this.#runs.applyLocal(await runs.create({ metadata, spec }))
      return
    } catch (error) {
      if (!isReason(error, 'AlreadyExists')) throw error
    }
    const existing = await runs.getOrUndefined(name, { namespace })
    if (existing?.spec.stackRef.uid === stack.metadata.uid) {
      // A previous process created it and crashed. Its inputs may be older, so decide again with it in the cache.
      this.#runs.applyLocal(existing)
      throw new RunExistsError(name)
    }
    if (existing) await this.#skipNumber(stack, spec.epoch, name)
    throw new RunExistsError(name)
  }

  /** A Stack with the same first 40 characters and first 5 of the uid has a Run of this name: skip the number. */
  async #skipNumber(stack: Stack, number: number, name: string): Promise<void> {
    const skipped = { name, type: 'Apply', phase: 'Canceled', reason: 'NameTaken', finishedAt: rfc3339(this.#nowMs()) }
    const status = { ...stack.status, lastRunNumber: number, lastRun: skipped }
    const present = this.#stacks.get(objectKey(stack)) ?? stack
    this.#stacks.applyLocal(await patchStatusIfChanged(this.#manager.leaderClient.resource(stackResource), present, status))
  }

  /** Fails with Conflict if the Run was assigned to a Worker meanwhile: then it runs, and the decision is made again. */
  async #supersede(stack: Stack, { name, resourceVersion, by }: NonNullable<StackDecision['supersedeRun']>): Promise<void> {
    const { namespace } = stack.metadata
    const message = `superseded by Run ${by} before it was assigned to a worker`
    const status = {
      phase: 'Canceled',
      reason: 'Superseded',
      message,
      supersededBy: by,
      finishedAt: rfc3339(this.#nowMs()),
      queuePosition: null,
    }
    this.#runs.applyLocal(
      await this.#manager.leaderClient.resource(runResource).patchStatus(name, { status }, { namespace, resourceVersion }),
    )
  }

  /** Fails with Conflict if the Run changed meanwhile: then the decision is made again. */
  async #cancel(stack: Stack, { name, reason }: NonNullable<StackDecision['cancelRun']>): Promise<void> {
    const { namespace } = stack.metadata
    const run = this.#runs.get(`${namespace}/${name}`)
    if (!run) return
    const { resourceVersion } = run.metadata
    const runs = this.#manager.leaderClient.resource(runResource)
    try {
      const patch = { spec: { cancel: true, ...(reason && { cancelReason: reason }) } }
      this.#runs.applyLocal(await runs.patch(name, patch, { type: 'merge', namespace, resourceVersion }))
    } catch (error) {
      if (!isReason(error, 'NotFound')) throw error
    }
  }

  async #delete(stack: Stack, name: string): Promise<void> {
    const { namespace } = stack.metadata
    const uid = this.#runs.get(`${namespace}/${name}`)?.metadata.uid
    if (!uid || this.#runs.get(`${namespace}/${name}`)?.metadata.deletionTimestamp) return
    try {
      await this.#manager.leaderClient.resource(runResource).delete(name, { namespace, preconditions: { uid } })
    } catch (error) {
      if (!isReason(error, 'NotFound', 'Conflict')) throw error
    }
  }
}

/** The Run existed already: not a failure, but the decision must be made again with it in the cache. */
class RunExistsError extends Error {
  constructor(name: string) {
    super(`run ${name} already exists; reconciling again`)
  }
}

/** Ignores the controller's own status writes: deciding on its own outcome changes nothing. */
const needsReconcile: Predicate<StackBody> = change => {
  if (change.type !== 'updated') return true
  const [old, now] = [change.old.metadata, change.object.metadata]
  return (
    old.generation !== now.generation ||
    old.deletionTimestamp !== now.deletionTimestamp ||
    old.annotations?.[annotations.requestedRun] !== now.annotations?.[annotations.requestedRun] ||
    old.annotations?.[annotations.approvedPlan] !== now.annotations?.[annotations.approvedPlan]
  )
}

/** True for changes of the fields that {@link dependencyGate}, inputs, cycles and the deletion order read from another Stack. */
const isRelevantToRelatedStacks: Predicate<StackBody> = change => {
  if (change.type !== 'updated') return true
  const relevantFields = ({ metadata, status }: KubeObject<StackBody>) => {
    const ready = findCondition(status?.conditions, 'Ready')
    const isStalled = findCondition(status?.conditions, 'Stalled')?.status === 'True'
    const { observedGeneration, outputsDigest } = status ?? {}
    return [metadata.generation, metadata.deletionTimestamp, observedGeneration, outputsDigest, ready?.status, ready?.reason, isStalled]
  }
  return !equalJson(relevantFields(change.old), relevantFields(change.object))
}

const haveKeysChanged: Predicate<KeyDigests> = change => change.type !== 'updated' || !equalJson(change.old.keys, change.object.keys)
