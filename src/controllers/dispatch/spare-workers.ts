/**
 * How long a dispatcher leaves a worker that another one prefers to that one: for the watch of its Worker, the assignment, and the worker's report
 * that it is busy. Twice what these take on a machine that is busy.
 */
export const spareDelayMs = 500

/**
 * Workers that other dispatchers prefer and whose slot has just become free. All dispatchers that see such a worker learn that at the same moment, and where
 * workers are scarce each of them has a Run for it: without an order nearly every one-shot worker would reject a Run. So the one that prefers it is first.
 * Nothing depends on that one: if it is dead or has no Run, the worker is used a moment later.
 */
export class SpareWorkers {
  /** By worker: until when it gets no Run. */
  readonly #heldUntilMs = new Map<string, number>()

  /** A worker that had no free slot has one now. */
  freed(name: string, nowMs: number): void {
    this.#heldUntilMs.set(name, nowMs + spareDelayMs)
  }

  delete(name: string): void {
    this.#heldUntilMs.delete(name)
  }

  isHeld(name: string): boolean {
    return this.#heldUntilMs.has(name)
  }

  /** The workers that may get Runs from now on. */
  expire(nowMs: number): readonly string[] {
    const expired = [...this.#heldUntilMs].flatMap(([name, untilMs]) => (untilMs <= nowMs ? [name] : []))
    for (const name of expired) this.#heldUntilMs.delete(name)
    return expired
  }

  /** When {@link expire} is due next; Infinity if it is not. */
  nextMs(): number {
    return Math.min(...this.#heldUntilMs.values())
  }
}
