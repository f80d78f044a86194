import { isEnded, type Run, runResource, stackResource } from '../../api/index.ts'
import { isReason } from '../../kubernetes/object/index.ts'
import { acceptWithinMs, assignedForMs, isAcceptanceOverdue } from './acceptance.ts'
import { assignedFinalizer } from './caches.ts'
import type { DispatchContext } from './dispatch-context.ts'

/** Runs that were given away and not begun are looked at this often. */
const acceptanceCheckIntervalMs = 500
/** One that is begun sooner is never called Assigned: that would be a write, and a conflict with its worker's, for nothing. */
const markAssignedAfterMs = 1_000

/** Begins the writes for Runs that need something other than a Worker. */
export class RunGarbageCollector {
  readonly #context: DispatchContext
  #acceptanceCheckedAtMs = -Infinity
  /** By uid of Runs that are not taken: the version at which they were called Assigned. Refused, it is not tried again: the cache is behind. */
  #markedAssigned: ReadonlyMap<string, string | undefined> = new Map()

  constructor(context: DispatchContext) {
    this.#context = context
  }

  /**
   * @param orphans keys of Runs whose Stack the cache does not have.
   * @returns after how many milliseconds there may be more.
   */
  pass(orphans: Iterable<string>, nowMs: number): number {
    const { caches, writes } = this.#context
    const { runs } = caches
    for (const run of runs.byIndex('canceled', 'yes')) {
      writes.begin(run, () => writes.end(run, 'Canceled', 'Canceled', 'canceled before it had a worker'))
    }
    for (const key of orphans) {
      const run = runs.get(key)
      if (run && !isEnded(run) && !run.spec.cancel) writes.begin(run, () => this.#cancelOrphan(run))
    }
    for (const run of runs.byIndex('deleted', 'yes')) if (!run.spec.cancel) writes.begin(run, () => this.#cancel(run))
    for (const run of runs.byIndex('leaving', 'yes'))
      if (isEnded(run) && !writes.isReleased(run)) writes.begin(run, () => this.#release(run))
    return this.#checkAcceptance(nowMs)
  }

  #checkAcceptance(nowMs: number): number {
    const { caches, writes } = this.#context
    const inMs = this.#acceptanceCheckedAtMs + acceptanceCheckIntervalMs - nowMs
    if (inMs > 0 && inMs <= acceptanceCheckIntervalMs) return caches.runs.indexKeys('untaken', 'yes').length > 0 ? inMs : Infinity
    this.#acceptanceCheckedAtMs = nowMs
    const before = this.#markedAssigned
    const marked = new Map<string, string | undefined>()
    let next = Infinity
    for (const run of caches.runs.byIndex('untaken', 'yes')) {
      const { uid, resourceVersion } = run.metadata
      const { phase, reason } = run.status ?? {}
      const forMs = assignedForMs(run, nowMs)
      if (reason === 'NotTaken') continue
      if (isAcceptanceOverdue(run, nowMs)) writes.begin(run, () => this.#reportNotAccepted(run))
      else next = Math.min(next, (forMs < markAssignedAfterMs ? markAssignedAfterMs : acceptWithinMs) - forMs)
      if (phase === 'Assigned' || forMs < markAssignedAfterMs) continue
      if (before.get(uid) !== resourceVersion) writes.begin(run, () => writes.markAssigned(run))
      marked.set(uid, resourceVersion)
    }
    this.#markedAssigned = marked
    return Math.max(next, acceptanceCheckIntervalMs)
  }

  /** The cache may not have seen the Stack yet, so the server is asked before its Run is given up. */
  async #cancelOrphan(run: Run): Promise<void> {
    const { manager, caches, writes } = this.#context
    const { namespace } = run.metadata
    const stack = await manager.leaderClient.resource(stackResource).getOrUndefined(run.spec.stackRef.name, { namespace })
    if (stack?.metadata.uid === run.spec.stackRef.uid) {
      caches.stacks.applyLocal(stack)
      return
    }
    if (run.spec.workerName) await this.#cancel(run)
    else await writes.end(run, 'Canceled', 'StackGone', `Stack ${run.spec.stackRef.name} does not exist any more`)
  }

  async #cancel(run: Run): Promise<void> {
    const { manager, caches } = this.#context
    // At the version that was looked at: who does not lead any more cancels nothing.
    const { name, namespace, resourceVersion } = run.metadata
    caches.runs.applyLocal(
      await manager.leaderClient
        .resource(runResource)
        .patch(name, { spec: { cancel: true } }, { type: 'merge', namespace, resourceVersion }),
    )
  }

  /** The Run may be gone with this: until the cache knows, it looks as if it were still to be done. */
  async #release(run: Run): Promise<void> {
    const { manager, writes } = this.#context
    const { name, namespace, resourceVersion, finalizers = [] } = run.metadata
    const patch = { metadata: { finalizers: finalizers.filter(one => one !== assignedFinalizer) } }
    try {
      await manager.leaderClient.resource(runResource).patch(name, patch, { type: 'merge', namespace, resourceVersion })
    } catch (error) {
      if (!isReason(error, 'NotFound')) throw error
    }
    writes.markReleased(run)
  }

  async #reportNotAccepted(run: Run): Promise<void> {
    const { events, writes } = this.#context
    const message = `worker ${run.spec.workerName} renews its Lease but did not take this Run within ${acceptWithinMs / 1_000} s; look at its log`
    events.warning(run, 'NotTaken', message)
    await writes.status(run, { phase: 'Assigned', reason: 'NotTaken', message })
  }
}
