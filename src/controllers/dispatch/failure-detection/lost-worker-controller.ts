import { isEnded, labels, type Run, runResource, systemNamespace, workerResource } from '../../../api/index.ts'
import { leaseResource } from '../../../kubernetes/client/index.ts'
import { coerceError } from '../../../kubernetes/controller/index.ts'
import { isReason, objectKey } from '../../../kubernetes/object/index.ts'
import { leaseVersionOf } from '../caches.ts'
import type { DispatchContext } from '../dispatch-context.ts'
import { decideLost, type LostWorker } from './decide-lost.ts'
import { LeaseObserver } from './lease-observer.ts'

/** The shell around {@link decideLost}: observes Leases, confirms each loss with the server, and ends the Runs of lost workers. */
export class LostWorkerController {
  readonly #context: DispatchContext
  readonly #removing = new Set<string>()
  #observer: LeaseObserver

  constructor(context: DispatchContext) {
    this.#context = context
    this.#observer = new LeaseObserver(context.leaseDurationMs)
  }

  /** Restarts all observations. Needed when this process becomes the leader again, as it has missed renewals. */
  reset(): void {
    this.#observer = new LeaseObserver(this.#context.leaseDurationMs)
  }

  /** Reports whether a worker may be lost: it is being removed, or its renewal is late by half a lease duration. */
  isSuspect(worker: string, monotonicMs: number): boolean {
    return this.#removing.has(worker) || this.#observer.ageMs(worker, monotonicMs) >= this.#context.leaseDurationMs / 2
  }

  /** Reports whether a pass is already scheduled for the deadline of the worker. */
  isObserved(worker: string): boolean {
    return this.#observer.isObserved(worker)
  }

  /** Records a renewal. It only extends the deadline, so it needs no pass. */
  observeRenewal(worker: string, version: string): void {
    if (this.#observer.isObserved(worker)) this.#observer.observe(worker, version, this.#context.monotonicMs())
  }

  /** @returns milliseconds until the next pass is due; undefined if none is. */
  async pass(): Promise<number | undefined> {
    const { caches, monotonicMs } = this.#context
    // The namespace has other Leases too, such as those of leader election. Only Leases of workers may be deleted.
    const ofWorkers = caches.leases.list().filter(({ metadata }) => metadata.labels?.[labels.pool] || caches.workers.get(metadata.name))
    const { lost, requeueAfterMs } = decideLost({
      workers: caches.workers.list(),
      runs: caches.runs.byIndex('active', 'yes'),
      leases: new Map(ofWorkers.map(lease => [lease.metadata.name, leaseVersionOf(lease)])),
      observer: this.#observer,
      nowMs: monotonicMs(),
    })
    await Promise.all(lost.map(worker => this.#removeLost(worker)))
    if (requeueAfterMs === undefined) return undefined
    // If the server did not respond, the removal is retried soon.
    return lost.length > 0 ? 500 : requeueAfterMs + 1
  }

  /**
   * Deletes the Lease first, at exactly the version of its last renewal: from then on every renewal fails, so that a worker that is still alive
   * stops. After a crash between two steps the next pass continues.
   */
  async #removeLost(lost: LostWorker): Promise<void> {
    const { manager, caches, log, wake } = this.#context
    const { worker } = lost
    this.#removing.add(worker)
    try {
      if (!(await this.#confirmLost(lost))) return
      for (const run of caches.runs.byIndex('activeByWorker', worker)) await this.#markLost(run, worker)
      if (lost.uid !== undefined)
        await ignoreDeleted(manager.leaderClient.resource(workerResource).delete(worker, { preconditions: { uid: lost.uid } }))
      log.warn({ worker, runs: lost.runs.map(objectKey) }, 'worker is lost')
    } catch (thrown) {
      log.warn({ err: coerceError(thrown), worker }, 'failed to remove a lost worker, retrying')
    } finally {
      this.#removing.delete(worker)
      wake()
    }
  }

  /** Reads the Lease from the server, as a stalled watch looks like a lost worker, and deletes it if it was not renewed. */
  async #confirmLost({ worker, leaseVersion }: LostWorker): Promise<boolean> {
    const handle = this.#context.manager.leaderClient.resource(leaseResource)
    const live = await handle.getOrUndefined(worker, { namespace: systemNamespace })
    if (!live) return true
    if (leaseVersionOf(live) !== leaseVersion) {
      this.#observer.observe(worker, leaseVersionOf(live), this.#context.monotonicMs())
      return false
    }
    const { uid, resourceVersion } = live.metadata
    try {
      await handle.delete(worker, { namespace: systemNamespace, preconditions: { uid, resourceVersion } })
    } catch (error) {
      if (isReason(error, 'Conflict')) return false
      if (!isReason(error, 'NotFound')) throw error
    }
    return true
  }

  async #markLost(run: Run, worker: string): Promise<void> {
    const { manager, writes, leaseDurationMs } = this.#context
    const message = `worker ${worker} did not renew its Lease for ${leaseDurationMs / 1_000} s and was declared lost`
    for (let current: Run | undefined = run; current && !isEnded(current) && current.spec.workerName === worker; ) {
      try {
        await writes.end(current, 'Lost', 'WorkerLost', message)
        return
      } catch (error) {
        if (!isReason(error, 'Conflict', 'NotFound')) throw error
        const { name, namespace } = run.metadata
        current = await manager.leaderClient.resource(runResource).getOrUndefined(name, { namespace })
      }
    }
  }
}

/** Ignores NotFound, and Conflict: another worker of this name has registered meanwhile. */
async function ignoreDeleted(write: Promise<unknown>): Promise<void> {
  try {
    await write
  } catch (error) {
    if (!isReason(error, 'NotFound', 'Conflict')) throw error
  }
}
