import { isTooFarAhead, parseRevision } from '../../kubernetes/util/index.ts'

/**
 * The highest resource version that any partition has told this gateway: sent with each request, so that what happens later gets a higher one. One that is
 * more than 60 s ahead of the clock of this gateway is ignored: all other partitions would ignore it, and with it what they have to be raised to.
 */
export class SeenVersion {
  readonly #nowMs: () => number
  #value = 0

  constructor(nowMs: () => number = Date.now) {
    this.#nowMs = nowMs
  }

  get value(): number {
    return this.#value
  }

  /** What is no version is ignored. */
  raise(version: number | string | string[] | undefined): void {
    const parsed = typeof version === 'string' ? parseRevision(version) : version
    if (typeof parsed !== 'number' || parsed <= this.#value) return
    if (!isTooFarAhead(parsed, this.#nowMs())) this.#value = parsed
  }
}
