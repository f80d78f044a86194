/**
 * What an observer knows about the Leases of workers. All times are of the observer's own monotonic clock, in milliseconds:
 * a Lease is expired when its content did not change for a whole duration since the observer last SAW it change
 * (invariant 2). Wall clocks, and the times written in the Lease, are never compared.
 *
 * A verdict of `expired` is a question to the server, not the last word: a watch that stands still looks the same as a
 * worker that stands still. Read the Lease itself, `observe` what it says, and ask again.
 */
export class LeaseObserver {
  readonly #durationMs: number
  readonly #observations = new Map<string, { token: string | undefined; sinceMs: number }>()

  /** @param durationMs how long a Lease may stay unchanged; 10,000 by the design, more is safe, less is not. */
  constructor(durationMs: number) {
    if (!Number.isFinite(durationMs) || durationMs <= 0) throw new RangeError(`durationMs must be a number > 0, got ${durationMs}`)
    this.#durationMs = durationMs
  }

  /**
   * Notes what a Lease looks like now; `token` changes with every renewal (its resourceVersion, or its renewTime) and is
   * undefined while there is none. A Lease that goes away does not win time: only a renewal does.
   */
  observe(worker: string, token: string | undefined, nowMs: number): void {
    const seen = this.#observations.get(worker)
    if (!seen) this.#observations.set(worker, { token, sinceMs: nowMs })
    else if (token !== undefined && token !== seen.token) this.#observations.set(worker, { token, sinceMs: nowMs })
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

  /** How long ago the Lease was last seen to change; 0 for one that is not observed. */
  ageMs(worker: string, nowMs: number): number {
    const seen = this.#observations.get(worker)
    return seen ? nowMs - seen.sinceMs : 0
  }

  /** How long until the next Lease expires if nothing is renewed; undefined when none is observed. */
  nextExpiryMs(nowMs: number): number | undefined {
    let next: number | undefined
    for (const { sinceMs } of this.#observations.values()) {
      const inMs = Math.max(0, sinceMs + this.#durationMs - nowMs)
      if (next === undefined || inMs < next) next = inMs
    }
    return next
  }
}
