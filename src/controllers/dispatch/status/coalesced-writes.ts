/** Counts change with every Run. A status is written at most this long after it changed. */
const statusDelayMs = 3_000

/**
 * When statuses that change all the time are written: {@link statusDelayMs} after the first change that is not written yet, so at most once in that time,
 * and not at all if a count has returned to its value. A change that people wait for is urgent and is written immediately.
 */
export class CoalescedWrites {
  /** By object: when its status began to differ from what is stored. */
  readonly #changedAtMs = new Map<string, number>()

  /** @returns milliseconds until the status must be written, 0 for now; Infinity if it has not changed. */
  dueInMs(name: string, change: 'None' | 'Count' | 'Urgent', nowMs: number): number {
    if (change !== 'Count') this.#changedAtMs.delete(name)
    if (change === 'None') return Number.POSITIVE_INFINITY
    if (change === 'Urgent') return 0
    const changedAtMs = this.#changedAtMs.get(name) ?? nowMs
    const inMs = changedAtMs + statusDelayMs - nowMs
    if (inMs > 0) this.#changedAtMs.set(name, changedAtMs)
    else this.#changedAtMs.delete(name)
    return Math.max(0, inMs)
  }

  forget(name: string): void {
    this.#changedAtMs.delete(name)
  }
}
