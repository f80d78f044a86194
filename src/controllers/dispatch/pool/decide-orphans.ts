import type { DriverWorker } from './pool-driver.ts'

/** A worker takes its objects away and then ends: this long it may be between the two. */
export const orphanGraceMs = 30_000

export type OrphanSince = { readonly sinceMs: number; readonly isStopRequested: boolean }

export type OrphansInput = {
  /** What drivers made and what has not ended. */
  readonly running: readonly DriverWorker[]
  readonly isRegistered: (worker: string) => boolean
  /** True for one that was started and still has time to register. */
  readonly isStarting: (worker: string) => boolean
  /** True for one that renews a Lease or has a Run: it may be doing something, and is asked, never made, to end (invariant 8). */
  readonly isAlive: (worker: string) => boolean
  /** By worker: since when it has been without a Worker object, and whether it was told to end; from the last decision. */
  readonly since: ReadonlyMap<string, OrphanSince>
  readonly nowMs: number
}

export type OrphansDecision = {
  /** Processes and Pods without a Worker: end them. */
  readonly stop: readonly { readonly name: string; readonly force: boolean }[]
  /** Remember this until the next decision. */
  readonly since: ReadonlyMap<string, OrphanSince>
  /** Decide again after so long. */
  readonly requeueAfterMs: number | undefined
}

/**
 * Finds processes and Pods that no Worker belongs to: given up before they registered, or declared dead and still there. The other
 * half, a Worker whose process is gone, needs no search: its Lease ends (invariant 2) and it is buried.
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
