import { isEnded, type Run, type Worker } from '../../../api/index.ts'
import type { LeaseObserver } from './lease-observer.ts'

export type LostInput = {
  readonly workers: readonly Worker[]
  /** Every Run that has a Worker and has not ended. */
  readonly runs: readonly Run[]
  /** By worker: what identifies the present renewal of its Lease. Only Leases of workers. */
  readonly leases: ReadonlyMap<string, string>
  readonly observer: LeaseObserver
  /** The observer's own monotonic clock. */
  readonly nowMs: number
}

/** A worker that is dead by invariant 2, and what it leaves behind. */
export type LostWorker = {
  readonly worker: string
  /** The renewal that was its last; delete the Lease only at this one, so that a late renewal fails. Undefined: it has none. */
  readonly leaseVersion: string | undefined
  /** Of its Worker object, and of no other that gets its name; undefined: there is none. */
  readonly uid: string | undefined
  /** Its Runs that have not ended: they are Lost. */
  readonly runs: readonly Run[]
}

export type LostDecision = {
  /** Confirm each against the server before acting on it (see {@link LeaseObserver}). */
  readonly lost: readonly LostWorker[]
  /** Look again after so long; undefined when there is nobody to watch. */
  readonly requeueAfterMs: number | undefined
}

/**
 * Decides which workers are dead. Observed is every name that a Worker object, a Lease or a Run speaks of: a worker that
 * deleted itself, and one whose start was cut short between its two objects, leave parts behind that go the same way.
 */
export function decideLost({ workers, runs, leases, observer, nowMs }: LostInput): LostDecision {
  const registered = new Map(workers.map(({ metadata }) => [metadata.name, metadata.uid]))
  const runsOf = new Map<string, Run[]>()
  for (const run of runs) {
    const { workerName } = run.spec
    if (!workerName || isEnded(run)) continue
    const others = runsOf.get(workerName)
    if (others) others.push(run)
    else runsOf.set(workerName, [run])
  }
  const names = new Set([...registered.keys(), ...leases.keys(), ...runsOf.keys()])
  observer.retain(names)
  const lost: LostWorker[] = []
  for (const worker of names) {
    const leaseVersion = leases.get(worker)
    observer.observe(worker, leaseVersion, nowMs)
    if (observer.isExpired(worker, nowMs)) {
      lost.push({ worker, leaseVersion, uid: registered.get(worker), runs: runsOf.get(worker) ?? [] })
    }
  }
  return { lost, requeueAfterMs: observer.nextExpiryMs(nowMs) }
}
