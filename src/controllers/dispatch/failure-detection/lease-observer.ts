/**
 * Observations of the Leases of workers. All times are milliseconds of the observer's own monotonic clock: a Lease is expired when it has not
 * changed for a whole lease duration since the observer last SAW it change (invariant 2). Wall clocks, and the times written in the Lease, are
 * never compared.
 *
 * `isExpired` is not final, because a stalled watch looks the same as a stalled worker. Before acting on it, read the Lease from the
 * server, `observe` it, and check again.
 */
export class LeaseObserver {
  readonly #durationMs: number
  readonly #observations = new Map<string, { version: string | undefined; sinceMs: number }>()

  /** @param durationMs how long a Lease may remain unchanged. 10,000 by design; a larger value is safe, a smaller one is not. */
  constructor(durationMs: number) {
    if (!Number.isFinite(durationMs) || durationMs <= 0) throw new RangeError(`durationMs must be a number > 0, got ${durationMs}`)
    this.#durationMs = durationMs
  }

  /**
   * Records the current state of a Lease. `version` changes with every renewal and is undefined while there is no Lease. Only a renewal
   * extends the deadline; the deletion of the Lease does not.
   */
  observe(worker: string, version: string | undefined, nowMs: number): void {
    const seen = this.#observations.get(worker)
    if (!seen) this.#observations.set(worker, { version, sinceMs: nowMs })
    else if (version !== undefined && version !== seen.version) this.#observations.set(worker, { version, sinceMs: nowMs })
  }

  /** Stops observing all but `workers` (invariant 10). */
  retain(workers: ReadonlySet<string>): void {
    for (const worker of this.#observations.keys()) if (!workers.has(worker)) this.#observations.delete(worker)
  }

  isObserved(worker: string): boolean {
    return this.#observations.has(worker)
  }

  isExpired(worker: string, nowMs: number): boolean {
    const seen = this.#observations.get(worker)
    return seen !== undefined && nowMs - seen.sinceMs >= this.#durationMs
  }

  /** Time since the Lease was last seen to change; 0 if it is not observed. */
  ageMs(worker: string, nowMs: number): number {
    const seen = this.#observations.get(worker)
    return seen ? nowMs - seen.sinceMs : 0
  }

  /** Time until the first Lease expires if none is renewed; undefined when none is observed. */
  nextExpiryMs(nowMs: number): number | undefined {
    let next: number | undefined
    for (const { sinceMs } of this.#observations.values()) {
      const inMs = Math.max(0, sinceMs + this.#durationMs - nowMs)
      if (next === undefined || inMs < next) next = inMs
    }
    return next
  }
}
