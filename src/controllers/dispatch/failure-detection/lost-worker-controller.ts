import { isEnded, labels, type Run, runResource, systemNamespace, workerResource } from '../../../api/index.ts'
import { coerceError } from '../../../kubernetes/controller/index.ts'
import { isReason, objectKey } from '../../../kubernetes/object/index.ts'
import { leaseResource, leaseToken } from '../caches.ts'
import type { Shared } from '../dispatch-parts.ts'
import { decideLost, type LostWorker } from './decide-lost.ts'
import { LeaseObserver } from './lease-observer.ts'

/** The shell around {@link decideLost}: watches Leases, makes sure of each death, and ends the Runs of the dead. */
export class LostWorkerController {
  readonly #shared: Shared
  readonly #burying = new Set<string>()
  #observer: LeaseObserver

  constructor(shared: Shared) {
    this.#shared = shared
    this.#observer = new LeaseObserver(shared.leaseDurationMs)
  }

  /** A process that leads again knows nothing of what happened meanwhile: it observes anew. */
  forget(): void {
    this.#observer = new LeaseObserver(this.#shared.leaseDurationMs)
  }

  /** True for a worker that may be dead already: it is being buried, or is late with its renewals. */
  isDoubtful(worker: string, monotonicMs: number): boolean {
    return this.#burying.has(worker) || this.#observer.ageMs(worker, monotonicMs) >= this.#shared.leaseDurationMs / 2
  }

  /** True for a worker whose deadline a pass will come for by itself. */
  isObserved(worker: string): boolean {
    return this.#observer.isObserved(worker)
  }

  /** A renewal only moves the deadline, which the pass at the deadline finds out by itself. */
  seeRenewal(worker: string, token: string): void {
    if (this.#observer.isObserved(worker)) this.#observer.observe(worker, token, this.#shared.monotonicMs())
  }

  /** Returns after how many milliseconds to look again. */
  async pass(): Promise<number | undefined> {
    const { caches, monotonicMs } = this.#shared
    // Other Leases live here too, such as those of controllers: only a worker's may be buried.
    const ofWorkers = caches.leases.list().filter(({ metadata }) => metadata.labels?.[labels.pool] || caches.workers.get(metadata.name))
    const { deaths, requeueAfterMs } = decideLost({
      workers: caches.workers.list(),
      runs: caches.runs.byIndex('active', 'yes'),
      leases: new Map(ofWorkers.map(lease => [lease.metadata.name, leaseToken(lease)])),
      observer: this.#observer,
      nowMs: monotonicMs(),
    })
    await Promise.all(deaths.map(death => this.#bury(death)))
    if (requeueAfterMs === undefined) return undefined
    // An expired one that could not be buried, as the server does not answer, is tried again after a moment.
    return deaths.length > 0 ? 500 : requeueAfterMs + 1
  }

  /**
   * The Lease goes first, at exactly the version that was its last: from then on a renewal of a worker that is not as
   * dead as it looks fails, and makes it stop by itself. A crash after any step is continued by the next pass.
   */
  async #bury(death: LostWorker): Promise<void> {
    const { manager, caches, log, kick } = this.#shared
    const { worker } = death
    this.#burying.add(worker)
    try {
      if (!(await this.#confirm(death))) return
      for (const run of caches.runs.byIndex('activeOf', worker)) await this.#markLost(run, worker)
      if (death.uid !== undefined)
        await ignoringGone(manager.leaderClient.resource(workerResource).delete(worker, { preconditions: { uid: death.uid } }))
      log.warn({ worker, runs: death.runs.map(objectKey) }, 'worker is lost')
    } catch (thrown) {
      log.warn({ err: coerceError(thrown), worker }, 'lost worker could not be cleared away, trying again')
    } finally {
      this.#burying.delete(worker)
      kick()
    }
  }

  /** Asks the server itself, as a watch that stands still looks like a dead worker, and takes the Lease away. */
  async #confirm({ worker, lease }: LostWorker): Promise<boolean> {
    const handle = this.#shared.manager.leaderClient.resource(leaseResource)
    const live = await handle.getOrUndefined(worker, { namespace: systemNamespace })
    if (!live) return true
    if (leaseToken(live) !== lease) {
      this.#observer.observe(worker, leaseToken(live), this.#shared.monotonicMs())
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
    const { manager, writes, leaseDurationMs } = this.#shared
    const message = `worker ${worker} did not renew its Lease for ${leaseDurationMs / 1_000} s and is taken for dead`
    for (let present: Run | undefined = run; present && !isEnded(present) && present.spec.workerName === worker; ) {
      try {
        await writes.end(present, 'Lost', 'WorkerLost', message)
        return
      } catch (error) {
        if (!isReason(error, 'Conflict', 'NotFound')) throw error
        const { name, namespace } = run.metadata
        present = await manager.leaderClient.resource(runResource).getOrUndefined(name, { namespace })
      }
    }
  }
}

/** Also another one of that name, that registered meanwhile, is not the one that died. */
async function ignoringGone(write: Promise<unknown>): Promise<void> {
  try {
    await write
  } catch (error) {
    if (!isReason(error, 'NotFound', 'Conflict')) throw error
  }
}
