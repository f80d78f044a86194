/** `qps` a second on average, `burst` at once after a pause. */
export type TokenRate = { qps: number; burst: number }

/** A token bucket: each taker reserves its place in time, so that those that must wait are spread evenly and none is overtaken. */
export class TokenBucket {
  readonly #qps: number
  readonly #burst: number
  /** May be negative: that many tokens are promised for later. Invariant: tokens <= burst. */
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

  /** Takes a token, and says in how many milliseconds it is there; 0 is now. */
  reserve(nowMs: number): number {
    this.#tokens = Math.min(this.#burst, this.#tokens + ((nowMs - this.#atMs) / 1_000) * this.#qps) - 1
    this.#atMs = nowMs
    return this.#tokens >= 0 ? 0 : (-this.#tokens / this.#qps) * 1_000
  }
}
