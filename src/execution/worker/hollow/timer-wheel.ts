/**
 * A wheel that gives each of `count` a turn once in `periodMs`, spread evenly: number i at `i / count` of each period. One timer that
 * asks {@link TimerWheel.due} now and then serves all of them; it holds two numbers, however many there are.
 */
export class TimerWheel {
  readonly #count: number
  readonly #periodMs: number
  readonly #startMs: number
  /** Turns given so far, over all periods. */
  #fired = 0

  constructor(count: number, periodMs: number, startMs: number) {
    this.#count = count
    this.#periodMs = periodMs
    this.#startMs = startMs
  }

  /**
   * Calls `turn` for each number whose turn came since the last call, in order, with when it was due. After a standstill of more than a
   * period each gets one turn, and not one for each period.
   */
  due(nowMs: number, turn: (index: number, dueMs: number) => void): void {
    const until = Math.floor(((nowMs - this.#startMs) / this.#periodMs) * this.#count)
    this.#fired = Math.max(this.#fired, until - this.#count)
    for (; this.#fired < until; this.#fired++) {
      turn(this.#fired % this.#count, this.#startMs + ((this.#fired + 1) / this.#count) * this.#periodMs)
    }
  }
}
