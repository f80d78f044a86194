import { isEnded, labels, type Run, runResource, systemNamespace, workerResource } from '../../../api/index.ts'
import { coerceError } from '../../../kubernetes/controller/index.ts'
import { isReason, objectKey } from '../../../kubernetes/object/index.ts'
import { leaseResource, leaseVersionOf } from '../caches.ts'
import type { DispatchContext } from '../dispatch-context.ts'
import { decideLost, type LostWorker } from './decide-lost.ts'
import { LeaseObserver } from './lease-observer.ts'

/** The shell around {@link decideLost}: watches Leases, makes sure of each death, and ends the Runs of the dead. */
export class LostWorkerController {
  readonly #context: DispatchContext
  readonly #removing = new Set<string>()
  #observer: LeaseObserver

  constructor(context: DispatchContext) {
    this.#context = context
    this.#observer = new LeaseObserver(context.leaseDurationMs)
  }

  /** A process that leads again knows nothing of what happened meanwhile: it observes anew. */
  reset(): void {
    this.#observer = new LeaseObserver(this.#context.leaseDurationMs)
  }

  /** True for a worker that may be dead already: it is being buried, or is late with its renewals. */
  isSuspect(worker: string, monotonicMs: number): boolean {
    return this.#removing.has(worker) || this.#observer.ageMs(worker, monotonicMs) >= this.#context.leaseDurationMs / 2
  }

  /** True for a worker whose deadline a pass will come for by itself. */
  isObserved(worker: string): boolean {
    return this.#observer.isObserved(worker)
  }

  /** A renewal only moves the deadline, which the pass at the deadline finds out by itself. */
  observeRenewal(worker: string, token: string): void {
    if (this.#observer.isObserved(worker)) this.#observer.observe(worker, token, this.#context.monotonicMs())
  }

  /** Returns after how many milliseconds to look again. */
  async pass(): Promise<number | undefined> {
    const { caches, monotonicMs } = this.#context
    // Other Leases live here too, such as those of controllers: only a worker's may be buried.
    const ofWorkers = caches.leases.list().filter(({ metadata }) => metadata.labels?.[labels.pool] || caches.workers.get(metadata.name))
    const { lost, requeueAfterMs } = decideLost({
      workers: caches.workers.list(),
      runs: caches.runs.byIndex('active', 'yes'),
      leases: new Map(ofWorkers.map(lease => [lease.metadata.name, leaseVersionOf(lease)])),
      observer: this.#observer,
      nowMs: monotonicMs(),
    })
    await Promise.all(lost.map(death => this.#removeLost(death)))
    if (requeueAfterMs === undefined) return undefined
    // An expired one that could not be buried, as the server does not answer, is tried again after a moment.
    return lost.length > 0 ? 500 : requeueAfterMs + 1
  }

  /**
   * The Lease goes first, at exactly the version that was its last: from then on a renewal of a worker that is not as
   * dead as it looks fails, and makes it stop by itself. A crash after any step is continued by the next pass.
   */
  async #removeLost(lost: LostWorker): Promise<void> {
    const { manager, caches, log, wake } = this.#context
    const { worker } = lost
    this.#removing.add(worker)
    try {
      if (!(await this.#confirmLost(lost))) return
      for (const run of caches.runs.byIndex('activeOf', worker)) await this.#markLost(run, worker)
      if (lost.uid !== undefined)
        await ignoreDeleted(manager.leaderClient.resource(workerResource).delete(worker, { preconditions: { uid: lost.uid } }))
      log.warn({ worker, runs: lost.runs.map(objectKey) }, 'worker is lost')
    } catch (thrown) {
      log.warn({ err: coerceError(thrown), worker }, 'lost worker could not be cleared away, trying again')
    } finally {
      this.#removing.delete(worker)
      wake()
    }
  }

  /** Asks the server itself, as a watch that stands still looks like a dead worker, and takes the Lease away. */
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
    const message = `worker ${worker} did not renew its Lease for ${leaseDurationMs / 1_000} s and is taken for dead`
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

/** Also another one of that name, that registered meanwhile, is not the one that died. */
async function ignoreDeleted(write: Promise<unknown>): Promise<void> {
  try {
    await write
  } catch (error) {
    if (!isReason(error, 'NotFound', 'Conflict')) throw error
  }
}
