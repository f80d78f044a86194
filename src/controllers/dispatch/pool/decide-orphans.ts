import type { DriverWorker } from './pool-driver.ts'

/** Grace period: a worker that shuts down deletes its Worker object shortly before its process ends. */
const orphanGraceMs = 30_000

export type OrphanSince = { readonly sinceMs: number; readonly isStopRequested: boolean }

export type OrphansInput = {
  /** Workers that drivers started and that have not ended. */
  readonly running: Iterable<DriverWorker>
  readonly isRegistered: (worker: string) => boolean
  /** True for a worker that was started and may still register in time. */
  readonly isStarting: (worker: string) => boolean
  /** True for a worker that renews a Lease or has a Run. It may be executing, so it is asked to stop and never killed (invariant 8). */
  readonly isAlive: (worker: string) => boolean
  /** By worker: since when it has had no Worker object, and whether it was asked to stop; from the previous decision. */
  readonly since: ReadonlyMap<string, OrphanSince>
  readonly nowMs: number
}

export type OrphansDecision = {
  /** Processes and Pods without a Worker object, to be stopped. */
  readonly stop: readonly { readonly name: string; readonly force: boolean }[]
  /** Input of the next decision. */
  readonly since: ReadonlyMap<string, OrphanSince>
  /** Time until the next decision is due. */
  readonly requeueAfterMs: number | undefined
}

/**
 * Finds processes and Pods without a Worker object: their registration timed out, or the worker was declared lost and still runs. The opposite, a
 * Worker without a process, is found by failure detection: its Lease expires (invariant 2).
 */
export function decideOrphans({ running, isRegistered, isStarting, isAlive, since, nowMs }: OrphansInput): OrphansDecision {
  const stop: { name: string; force: boolean }[] = []
  const next = new Map<string, OrphanSince>()
  let requeueAfterMs: number | undefined
  for (const { name } of running) {
    if (isRegistered(name) || isStarting(name)) continue
    const { sinceMs, isStopRequested } = since.get(name) ?? { sinceMs: nowMs, isStopRequested: false }
    const remainingMs = sinceMs + orphanGraceMs - nowMs
    const isDue = remainingMs <= 0
    if (isDue) stop.push({ name, force: isStopRequested && !isAlive(name) })
    next.set(name, isDue ? { sinceMs: nowMs, isStopRequested: true } : { sinceMs, isStopRequested })
    requeueAfterMs = Math.min(requeueAfterMs ?? Number.POSITIVE_INFINITY, isDue ? orphanGraceMs : remainingMs)
  }
  return { stop, since: next, requeueAfterMs }
}
