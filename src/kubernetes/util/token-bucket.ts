/** `qps` tokens per second on average, and up to `burst` at the same time. */
export type TokenRate = { qps: number; burst: number }

/** A token bucket with reservations: callers that have to wait are spread evenly and keep their order. */
export class TokenBucket {
  readonly #qps: number
  readonly #burst: number
  /** Negative if tokens are reserved in advance. Invariant: tokens <= burst. */
  #tokens: number
  #atMs: number

  /** @throws {RangeError} naming the field of the option `optionName` that is out of range. */
  constructor(optionName: string, { qps, burst }: TokenRate, nowMs: number) {
    if (!(qps > 0)) throw new RangeError(`${optionName}.qps must be a number > 0, got ${qps}`)
    if (!(burst >= 1)) throw new RangeError(`${optionName}.burst must be a number >= 1, got ${burst}`)
    this.#qps = qps
    this.#burst = burst
    this.#tokens = burst
    this.#atMs = nowMs
  }

  /** Reserves a token; returns the milliseconds until it is available, 0 for now. */
  reserve(nowMs: number): number {
    this.#refill(nowMs)
    this.#tokens--
    return this.#tokens >= 0 ? 0 : (-this.#tokens / this.#qps) * 1_000
  }

  /** Takes a token if there is one now. */
  tryTake(nowMs: number): boolean {
    this.#refill(nowMs)
    if (this.#tokens < 1) return false
    this.#tokens--
    return true
  }

  #refill(nowMs: number): void {
    this.#tokens = Math.min(this.#burst, this.#tokens + ((nowMs - this.#atMs) / 1_000) * this.#qps)
    this.#atMs = nowMs
  }
}
