/** How long the event loop is blocked. */
const sliceMs = 2

/** Synchronous work in short slices, between which others have a turn. */
export class Slices {
  #startedMs = performance.now()
  #beforeMs = 0

  /** Time of the slices, without that of others. */
  get busyMs(): number {
    return this.#beforeMs + performance.now() - this.#startedMs
  }

  async pauseIfDue(): Promise<void> {
    const spentMs = performance.now() - this.#startedMs
    if (spentMs < sliceMs) return
    this.#beforeMs += spentMs
    await new Promise(resolve => setImmediate(resolve))
    this.#startedMs = performance.now()
  }
}
