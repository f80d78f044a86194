import type { Clock } from './clock.ts'

/** `qps` requests a second on average, `burst` at once after a pause. */
export type PaceOptions = { qps: number; burst: number }

/**
 * A token bucket: lets requests through in their order, at most `burst` at once and `qps` a second after that. A request
 * that must wait reserves its place, so that waiting ones are spread evenly and none is overtaken.
 */
export class Pace {
  readonly #qps: number
  readonly #burst: number
  readonly #clock: Clock
  /** May be negative: that many requests wait already. Invariant: tokens <= burst. */
  #tokens: number
  #atMs: number

  /** @throws {RangeError} naming the option that is out of range. */
  constructor({ qps, burst }: PaceOptions, clock: Clock) {
    if (!(qps > 0)) throw new RangeError(`pace.qps must be a number > 0, got ${qps}`)
    if (!(burst >= 1)) throw new RangeError(`pace.burst must be a number >= 1, got ${burst}`)
    this.#qps = qps
    this.#burst = burst
    this.#clock = clock
    this.#tokens = burst
    this.#atMs = clock.nowMs()
  }

  /** Undefined if the request may go now, else resolves when it may, or as soon as `signal` aborts. */
  wait(signal?: AbortSignal): Promise<void> | undefined {
    const nowMs = this.#clock.nowMs()
    this.#tokens = Math.min(this.#burst, this.#tokens + ((nowMs - this.#atMs) / 1_000) * this.#qps) - 1
    this.#atMs = nowMs
    if (this.#tokens >= 0) return undefined
    return this.#clock.sleep((-this.#tokens / this.#qps) * 1_000, signal)
  }
}
