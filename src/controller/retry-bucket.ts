/** `qps` retries a second on average, `burst` at once after a pause. */
export type RetryRate = { qps: number; burst: number }

/**
 * A token bucket over the retries of all keys: when everything fails at once (the API server is away, a dependency is
 * down), each key's own backoff still lets thousands of them come back in the same second. As client-go's default
 * (10 qps, 100 burst there), a retry waits for the longer of the two.
 */
export class RetryBucket {
  readonly #qps: number
  readonly #burst: number
  /** May be negative: that many retries wait for their time. */
  #tokens: number
  #atMs: number

  /** @throws {RangeError} naming the option that is out of range. */
  constructor({ qps, burst }: RetryRate, nowMs: number) {
    if (!(qps > 0)) throw new RangeError(`retryRate.qps must be a number > 0, got ${qps}`)
    if (!(burst >= 1)) throw new RangeError(`retryRate.burst must be a number >= 1, got ${burst}`)
    this.#qps = qps
    this.#burst = burst
    this.#tokens = burst
    this.#atMs = nowMs
  }

  /** Takes a token, and says in how many milliseconds it is there. */
  reserve(nowMs: number): number {
    this.#tokens = Math.min(this.#burst, this.#tokens + ((nowMs - this.#atMs) / 1_000) * this.#qps) - 1
    this.#atMs = nowMs
    return this.#tokens >= 0 ? 0 : (-this.#tokens / this.#qps) * 1_000
  }
}
