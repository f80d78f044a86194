import { isEnded, type Run, type Worker } from '../../../api/index.ts'
import type { LeaseObserver } from './lease-observer.ts'

export type LostInput = {
  readonly workers: readonly Worker[]
  /** Every Run that has a Worker and has not ended. */
  readonly runs: readonly Run[]
  /** By worker: the version of its Lease, which changes with each renewal. Leases of workers only. */
  readonly leases: ReadonlyMap<string, string>
  readonly observer: LeaseObserver
  /** The observer's own monotonic clock. */
  readonly nowMs: number
}

/** A worker that is lost by invariant 2, and the objects it leaves. */
export type LostWorker = {
  readonly worker: string
  /** Version of its last renewal. Delete the Lease only at this version, so that a late renewal fails. Undefined: it has no Lease. */
  readonly leaseVersion: string | undefined
  /** Uid of its Worker, to delete no other Worker of the same name. Undefined: it has none. */
  readonly uid: string | undefined
  /** Its active Runs, which become Lost. */
  readonly runs: readonly Run[]
}

export type LostDecision = {
  /** Confirm each against the server before acting on it (see {@link LeaseObserver}). */
  readonly lost: readonly LostWorker[]
  /** Time until the next decision is due; undefined when no worker is observed. */
  readonly requeueAfterMs: number | undefined
}

/**
 * Decides which workers are lost. It observes every name that occurs in a Worker, a Lease or a Run: a worker that ended between two steps of
 * its registration or of its shutdown leaves only some of these objects, and they are removed in the same way.
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
