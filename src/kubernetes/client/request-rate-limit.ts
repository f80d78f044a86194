import { TokenBucket, type TokenRate } from '../util/token-bucket.ts'
import type { Clock } from './clock.ts'

/** `qps` requests a second on average, `burst` at once after a pause. */
export type PaceOptions = TokenRate

/** Lets requests through in their order, at most `burst` at once and `qps` a second after that. */
export class RequestRateLimit {
  readonly #bucket: TokenBucket
  readonly #clock: Clock

  /** @throws {RangeError} naming the option that is out of range. */
  constructor(options: PaceOptions, clock: Clock) {
    this.#bucket = new TokenBucket('pace', options, clock.nowMs())
    this.#clock = clock
  }

  /** Undefined if the request may go now, else resolves when it may, or as soon as `signal` aborts. */
  wait(signal?: AbortSignal): Promise<void> | undefined {
    const waitMs = this.#bucket.reserve(this.#clock.nowMs())
    return waitMs === 0 ? undefined : this.#clock.sleep(waitMs, signal)
  }
}
