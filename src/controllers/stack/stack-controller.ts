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
import { decideStack, jitterOf, type StackDecision } from './decide-stack.ts'
import { dependencyNames, findCycle } from './dependencies.ts'
import { type KeyDigests, namedInputs, resolveInputs, withoutValues } from './inputs-digest.ts'
import { stackFinalizer } from './limits.ts'
import { isNamespaceTerminating, namespaceTerminating } from './namespace-terminating.ts'
import { Revisions } from './revisions.ts'
import { stackLabel } from './run-name.ts'
import { specErrors } from './spec-errors.ts'

export type StackControllerOptions = {
  /** The revision of a Stack's source as it is now; rejects with `{ reason, message, retryable }`. */
  resolveRevision(stack: Stack): Promise<string>
  /** What is wrong with a Stack's source, as far as that can be seen without reading it. */
  checkSource(stack: Stack): StatusCause[]
  /** Forgets what was kept of a Stack that is gone (state, plans). Not called where `deletion: Orphan` leaves its things standing. */
  removeStackData?(stackUid: string): Promise<void>
  /** Wall clock in milliseconds. */
  nowMs?: () => number
  /** Stacks worked on at the same time, most of which wait for a write; default 64. */
  maxConcurrent?: number
}

/** A reconcile waits for the revision of a source for so long; a slow repository brings another reconcile. */
const lookUpMs = 20

/** The caches are looked at again after so long when they were behind the server. */
const behindMs = 20

type StackBody = { spec: Stack['spec']; status?: Stack['status'] }
type RunBody = { spec: Run['spec']; status?: Run['status'] }

const core = { group: '', version: 'v1', scope: 'Namespaced' } as const
const secretResource: Resource<KeyDigests> = describeResource({ ...core, kind: 'Secret', plural: 'secrets' })
const configMapResource: Resource<KeyDigests> = describeResource({ ...core, kind: 'ConfigMap', plural: 'configmaps' })

/** Adds the controller that makes Runs for Stacks and writes their status. */
export function addStackController(manager: Manager, options: StackControllerOptions): void {
  manager.add(new StackReconciler(manager, options).controller)
}

/** The shell around {@link decideStack}: reads caches, writes what was decided, in an order that survives a crash after each step. */
class StackReconciler {
  readonly controller: Controller
  readonly #manager: Manager
  readonly #options: StackControllerOptions
  readonly #stacks: Informer<StackBody>
  readonly #runs: Informer<RunBody>
  readonly #secrets: Informer<KeyDigests>
  readonly #configMaps: Informer<KeyDigests>
  readonly #revisions: Revisions
  readonly #events: EventRecorder
  readonly #nowMs: () => number
  /** Uids of Stacks that were let go, and that the cache still has: there is nothing left to do for them. */
  readonly #released = new Set<string>()
  /** By key: the version of a Stack that a write was refused at, until the cache has a newer one. */
  readonly #refusedAt = new Map<string, string>()

  constructor(manager: Manager, options: StackControllerOptions) {
    this.#manager = manager
    this.#options = options
    this.#nowMs = options.nowMs ?? Date.now
    this.#events = new EventRecorder({ client: manager.leaderClient, component: 'oarlock-stack' })
    const indexes = {
      dependsOn: (stack: KubeObject<StackBody>) => dependencyNames(stack.spec).map(name => `${stack.metadata.namespace}/${name}`),
      namedInputs: (stack: KubeObject<StackBody>) => namedInputs(stack.spec).map(name => `${stack.metadata.namespace}/${name}`),
    }
    this.#stacks = manager.informer(stackResource, { indexes })
    this.#runs = manager.informer(runResource, { indexes: { stackUid: run => [run.spec.stackRef.uid] } })
    this.#secrets = manager.informer(secretResource, { transform: withoutValues })
    this.#configMaps = manager.informer(configMapResource, { transform: withoutValues })
    this.#revisions = new Revisions({
      resolve: options.resolveRevision,
      onAnswer: stack => this.controller.enqueue(objectKey(stack)),
      nowMs: this.#nowMs,
    })
    const usersOf = (kind: string) => (object: KubeObject<KeyDigests>) =>
      this.#stacks.byIndex('namedInputs', `${object.metadata.namespace}/${kind}/${object.metadata.name}`).map(objectKey)
    this.controller = controller({
      name: 'stack',
      for: stackResource,
      predicates: [isAsked],
      owns: [runResource],
      watches: [
        watching(stackResource, stack => this.#neighbours(stack), { predicate: isNewsToNeighbours }),
        watching(secretResource, usersOf('secret'), { predicate: haveKeysChanged, informer: { transform: withoutValues } }),
        watching(configMapResource, usersOf('configMap'), { predicate: haveKeysChanged, informer: { transform: withoutValues } }),
      ],
      maxConcurrent: options.maxConcurrent ?? 64,
      backoff: { maxDelayMs: 30_000 },
      reconcile: request => this.#reconcile(request),
    })
    this.#stacks.onChange({
      deleted: ({ metadata }) => {
        this.#revisions.forget(metadata.uid)
        this.#released.delete(metadata.uid)
        this.#refusedAt.delete(objectKey({ metadata }))
      },
    })
  }

  #neighbours(stack: KubeObject<StackBody>): string[] {
    const { namespace } = stack.metadata
    const dependents = this.#stacks.byIndex('dependsOn', objectKey(stack)).map(objectKey)
    return [...dependents, ...dependencyNames(stack.spec).map(name => `${namespace}/${name}`)]
  }

  async #reconcile({ key, namespace = '' }: ReconcileRequest): Promise<Result> {
    const stack = this.#stacks.get(key)
    if (!stack || this.#released.has(stack.metadata.uid)) return
    // The same would be refused again.
    if (this.#refusedAt.get(key) === stack.metadata.resourceVersion) return { requeueAfterMs: behindMs }
    this.#refusedAt.delete(key)
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
    const { revision, checkInMs } = causes.length > 0 ? { revision: undefined, checkInMs: undefined } : await this.#lookAt(stack)
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
      // The caches were behind: decided again with what is there, which the watch brings within moments.
      if (isReason(error, 'Conflict') || error instanceof RunExistsError) return { requeueAfterMs: behindMs }
      if (!isNamespaceTerminating(error)) throw error
      // The deletion of a namespace cannot be taken back: only a change of the Stack helps, which comes by the watch.
      const present = this.#stacks.get(key) ?? stack
      await this.#act(present, { ...namespaceTerminating(present, this.#nowMs()), deleteRuns: [] })
      return undefined
    }
    const again = [decision.requeueAfterMs, checkInMs].filter(ms => ms !== undefined)
    return again.length > 0 ? { requeueAfterMs: Math.min(...again) } : undefined
  }

  async #lookAt(stack: Stack): Promise<ReturnType<Revisions['get']>> {
    const look = () => this.#revisions.get(stack, pendingRequest(stack, stack.status ?? {})?.value)
    const seen = look()
    if (seen.revision !== undefined) return seen
    // What is in the Stack itself is known at once: not worth a status that says that it is being looked up.
    await this.#revisions.soon(stack.metadata.uid, lookUpMs)
    return look()
  }

  /**
   * The Stack's Runs. If the one that the status speaks of as active is not in the cache, the server is asked: two
   * caches need not be equally new, and a Run taken for deleted would get a second one beside it (invariant 1).
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
        if (isReason(error, 'Conflict')) this.#refusedAt.set(objectKey(stack), resourceVersion)
        throw error
      }
      this.#stacks.applyLocal(present)
    }
    // Only what is in the status may be told and forgotten.
    this.#tell(stack, decision)
    await Promise.all(decision.deleteRuns.map(name => this.#delete(stack, name)))
  }

  async #release(stack: Stack, decision: StackDecision): Promise<void> {
    this.#tell(stack, decision)
    if (stack.spec.deletion !== 'Orphan') await this.#options.removeStackData?.(stack.metadata.uid)
    const released = await removeFinalizer(this.#manager.leaderClient.resource(stackResource), stack, stackFinalizer)
    this.#revisions.forget(stack.metadata.uid)
    // Where other finalizers hold it, it is still there.
    if (released.metadata.finalizers?.length) this.#stacks.applyLocal(released)
    else if (this.#stacks.has(objectKey(stack))) this.#released.add(stack.metadata.uid)
  }

  #tell(stack: Stack, { events }: StackDecision): void {
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
      // A process before this one created it and died: its inputs may be older, so it is decided again with it in view.
      this.#runs.applyLocal(existing)
      throw new RunExistsError(name)
    }
    if (existing) await this.#skipNumber(stack, spec.epoch, name)
    throw new RunExistsError(name)
  }

  /** Another Stack, alike in the first 40 characters and the first 5 of the uid, has this name: the number is left out. */
  async #skipNumber(stack: Stack, number: number, name: string): Promise<void> {
    const skipped = { name, type: 'Apply', phase: 'Canceled', reason: 'NameTaken', finishedAt: rfc3339(this.#nowMs()) }
    const status = { ...stack.status, lastRunNumber: number, lastRun: skipped }
    const present = this.#stacks.get(objectKey(stack)) ?? stack
    this.#stacks.applyLocal(await patchStatusIfChanged(this.#manager.leaderClient.resource(stackResource), present, status))
  }

  /** Refused with Conflict if it got a Worker meanwhile: then it runs, and it is decided again. */
  async #supersede(stack: Stack, { name, resourceVersion, by }: NonNullable<StackDecision['supersedeRun']>): Promise<void> {
    const { namespace } = stack.metadata
    const message = `replaced by Run ${by} before it had a worker`
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

  /** Refused with Conflict if it has moved on: then it is decided again. */
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

/** The Run was there already: not a failure, but the decision has to be made again with it in view. */
class RunExistsError extends Error {
  constructor(name: string) {
    super(`run ${name} exists already and is looked at again`)
  }
}

/** Own status writes are not looked at again: deciding on one's own outcome changes nothing. */
const isAsked: Predicate<StackBody> = change => {
  if (change.type !== 'updated') return true
  const [old, now] = [change.old.metadata, change.object.metadata]
  return (
    old.generation !== now.generation ||
    old.deletionTimestamp !== now.deletionTimestamp ||
    old.annotations?.[annotations.requestedRun] !== now.annotations?.[annotations.requestedRun] ||
    old.annotations?.[annotations.approvedPlan] !== now.annotations?.[annotations.approvedPlan]
  )
}

/** What {@link dependencyGate}, inputs, cycles and the order of deletion look at in another Stack. */
const isNewsToNeighbours: Predicate<StackBody> = change => {
  if (change.type !== 'updated') return true
  const seen = ({ metadata, status }: KubeObject<StackBody>) => {
    const ready = findCondition(status?.conditions, 'Ready')
    const isStalled = findCondition(status?.conditions, 'Stalled')?.status === 'True'
    const { observedGeneration, outputsDigest } = status ?? {}
    return [metadata.generation, metadata.deletionTimestamp, observedGeneration, outputsDigest, ready?.status, ready?.reason, isStalled]
  }
  return !equalJson(seen(change.old), seen(change.object))
}

const haveKeysChanged: Predicate<KeyDigests> = change => change.type !== 'updated' || !equalJson(change.old.keys, change.object.keys)
