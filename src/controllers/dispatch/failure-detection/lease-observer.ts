/**
 * Observations of the Leases of workers. All times are milliseconds of the observer's own monotonic clock: a Lease is expired when it has not
 * changed for a whole lease duration since the observer last SAW it change (invariant 2). Wall clocks, and the times written in the Lease, are
 * never compared.
 *
 * Expiry is not final, because a stalled watch looks the same as a stalled worker. Before acting on it, read the Lease from the
 * server, `observe` it, and check again.
 */
export class LeaseObserver {
  /** In the order of `sinceMs`, oldest first: a renewal moves its worker to the end. Finding who is late costs nothing for those who are not. */
  readonly #observations = new Map<string, { readonly version: string | undefined; readonly sinceMs: number }>()

  /**
   * Records the current state of a Lease; times never decrease from one call to the next. `version` changes with every renewal and is undefined
   * while there is no Lease. Only a renewal extends the deadline; the deletion of the Lease does not.
   * Returns true if the observation is new, or the Lease was renewed.
   */
  observe(worker: string, version: string | undefined, nowMs: number): boolean {
    const seen = this.#observations.get(worker)
    if (seen && (version === undefined || version === seen.version)) return false
    this.#observations.delete(worker)
    this.#observations.set(worker, { version, sinceMs: nowMs })
    return true
  }

  /** Starts the observation of a worker again. */
  restart(worker: string, nowMs: number): void {
    const version = this.#observations.get(worker)?.version
    this.#observations.delete(worker)
    this.#observations.set(worker, { version, sinceMs: nowMs })
  }

  forget(worker: string): void {
    this.#observations.delete(worker)
  }

  isObserved(worker: string): boolean {
    return this.#observations.has(worker)
  }

  /** All workers, the one that has been silent for the longest time first. */
  *bySilence(): Generator<{ readonly worker: string; readonly sinceMs: number }> {
    for (const [worker, { sinceMs }] of this.#observations) yield { worker, sinceMs }
  }
}
