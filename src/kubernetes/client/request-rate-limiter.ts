import { TokenBucket, type TokenRate } from '../util/token-bucket.ts'
import type { Clock } from './clock.ts'

/** `qps` requests per second on average, and bursts of `burst` requests. */
export type RateLimitOptions = TokenRate

/** Lets requests pass in order, with bursts of `burst` requests and `qps` per second on average. */
export class RequestRateLimiter {
  readonly #bucket: TokenBucket
  readonly #clock: Clock

  /** @throws {RangeError} naming the option that is out of range. */
  constructor(options: RateLimitOptions, clock: Clock) {
    this.#bucket = new TokenBucket('rateLimit', options, clock.nowMs())
    this.#clock = clock
  }

  /** Undefined if the request may be sent now; otherwise resolves when it may, or when `signal` aborts. */
  wait(signal?: AbortSignal): Promise<void> | undefined {
    const waitMs = this.#bucket.reserve(this.#clock.nowMs())
    return waitMs === 0 ? undefined : this.#clock.sleep(waitMs, signal)
  }
}
