import { isEnded, type Run, runResource, stackResource } from '../../api/index.ts'
import { isReason } from '../../kubernetes/object/index.ts'
import { acceptWithinMs, assignedForMs, isAcceptanceOverdue } from './acceptance.ts'
import { assignedFinalizer } from './caches.ts'
import type { DispatchContext } from './dispatch-context.ts'

/** How often Runs that are assigned and not accepted are checked. */
const acceptanceCheckIntervalMs = 500
/** A Run that is accepted sooner never gets phase Assigned: that write would be useless and would conflict with the worker's write. */
const markAssignedAfterMs = 1_000

/**
 * Ends Runs that were canceled, or whose Stack was deleted, before they were assigned; cancels deleted Runs; removes the finalizer of ended Runs;
 * and reports Runs that their worker does not accept.
 */
export class RunGarbageCollector {
  readonly #context: DispatchContext
  #acceptanceCheckedAtMs = -Infinity
  /** By uid of unaccepted Runs: the version at which phase Assigned was written. A rejected write is not retried at the same version, as the cache is stale. */
  #markedAssigned: ReadonlyMap<string, string | undefined> = new Map()

  constructor(context: DispatchContext) {
    this.#context = context
  }

  /**
   * @param orphans keys of Runs whose Stack is not in the cache.
   * @returns milliseconds until the next pass is due; Infinity if none is.
   */
  pass(orphans: Iterable<string>, nowMs: number): number {
    const { caches, writes } = this.#context
    const { runs } = caches
    for (const run of runs.byIndex('canceled', 'yes')) {
      writes.begin(run, () => writes.end(run, 'Canceled', 'Canceled', 'canceled before it was assigned to a worker'))
    }
    for (const key of orphans) {
      const run = runs.get(key)
      if (run && !isEnded(run) && !run.spec.cancel) writes.begin(run, () => this.#cancelOrphan(run))
    }
    for (const run of runs.byIndex('deleted', 'yes')) if (!run.spec.cancel) writes.begin(run, () => this.#cancel(run))
    for (const run of runs.byIndex('terminating', 'yes'))
      if (isEnded(run) && !writes.isReleased(run)) writes.begin(run, () => this.#release(run))
    return this.#checkAcceptance(nowMs)
  }

  #checkAcceptance(nowMs: number): number {
    const { caches, writes } = this.#context
    const inMs = this.#acceptanceCheckedAtMs + acceptanceCheckIntervalMs - nowMs
    if (inMs > 0 && inMs <= acceptanceCheckIntervalMs) return caches.runs.indexKeys('unaccepted', 'yes').length > 0 ? inMs : Infinity
    this.#acceptanceCheckedAtMs = nowMs
    const before = this.#markedAssigned
    const marked = new Map<string, string | undefined>()
    let next = Infinity
    for (const run of caches.runs.byIndex('unaccepted', 'yes')) {
      const { uid, resourceVersion } = run.metadata
      const { phase, reason } = run.status ?? {}
      const forMs = assignedForMs(run, nowMs)
      if (reason === 'NotAccepted') continue
      if (isAcceptanceOverdue(run, nowMs)) writes.begin(run, () => this.#reportNotAccepted(run))
      else next = Math.min(next, (forMs < markAssignedAfterMs ? markAssignedAfterMs : acceptWithinMs) - forMs)
      if (phase === 'Assigned' || forMs < markAssignedAfterMs) continue
      if (before.get(uid) !== resourceVersion) writes.begin(run, () => writes.markAssigned(run))
      marked.set(uid, resourceVersion)
    }
    this.#markedAssigned = marked
    return Math.max(next, acceptanceCheckIntervalMs)
  }

  /** The Stack may be missing only from the cache, so the server is read before the Run is ended. */
  async #cancelOrphan(run: Run): Promise<void> {
    const { manager, caches, writes } = this.#context
    const { namespace } = run.metadata
    const stack = await manager.leaderClient.resource(stackResource).getOrUndefined(run.spec.stackRef.name, { namespace })
    if (stack?.metadata.uid === run.spec.stackRef.uid) {
      caches.stacks.applyLocal(stack)
      return
    }
    if (run.spec.workerName) await this.#cancel(run)
    else await writes.end(run, 'Canceled', 'StackDeleted', `Stack ${run.spec.stackRef.name} was deleted`)
  }

  async #cancel(run: Run): Promise<void> {
    const { manager, caches } = this.#context
    // The resourceVersion makes the write fail if the Run has changed: a process that is no longer the leader cancels nothing.
    const { name, namespace, resourceVersion } = run.metadata
    caches.runs.applyLocal(
      await manager.leaderClient
        .resource(runResource)
        .patch(name, { spec: { cancel: true } }, { type: 'merge', namespace, resourceVersion }),
    )
  }

  /** This write may delete the Run. Until the cache has seen that, `markReleased` keeps the next passes from repeating it. */
  async #release(run: Run): Promise<void> {
    const { manager, writes } = this.#context
    const { name, namespace, resourceVersion, finalizers = [] } = run.metadata
    const patch = { metadata: { finalizers: finalizers.filter(finalizer => finalizer !== assignedFinalizer) } }
    try {
      await manager.leaderClient.resource(runResource).patch(name, patch, { type: 'merge', namespace, resourceVersion })
    } catch (error) {
      if (!isReason(error, 'NotFound')) throw error
    }
    writes.markReleased(run)
  }

  async #reportNotAccepted(run: Run): Promise<void> {
    const { events, writes } = this.#context
    const message = `worker ${run.spec.workerName} renews its Lease but did not accept this Run within ${acceptWithinMs / 1_000} s; see the worker's log`
    events.warning(run, 'NotAccepted', message)
    await writes.status(run, { phase: 'Assigned', reason: 'NotAccepted', message })
  }
}
