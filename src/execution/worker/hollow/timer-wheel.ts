/**
 * A timer wheel that fires each of `count` timers once in `periodMs`, evenly spread: timer i fires at `i / count` of each period. One
 * interval that calls {@link TimerWheel.due} serves all of them; memory is constant.
 */
export class TimerWheel {
  readonly #count: number
  readonly #periodMs: number
  readonly #startMs: number
  /** Timers fired so far, over all periods. */
  #fired = 0

  constructor(count: number, periodMs: number, startMs: number) {
    this.#count = count
    this.#periodMs = periodMs
    this.#startMs = startMs
  }

  /**
   * Calls `fire` for each timer that became due since the last call, in order, with the time it was due. After a pause of more than a
   * period each fires once, not once for each period.
   */
  due(nowMs: number, fire: (index: number, dueMs: number) => void): void {
    const until = Math.floor(((nowMs - this.#startMs) / this.#periodMs) * this.#count)
    this.#fired = Math.max(this.#fired, until - this.#count)
    for (; this.#fired < until; this.#fired++) {
      fire(this.#fired % this.#count, this.#startMs + ((this.#fired + 1) / this.#count) * this.#periodMs)
    }
  }
}
