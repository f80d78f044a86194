import { parseRevision, readRevision } from '../kubernetes/util/index.ts'

/** As far as partitions let their clocks be raised. */
const maxLeadMs = 60_000

/**
 * The highest resource version that any partition has told this gateway: sent with each request, so that what happens later gets a higher one. One that is
 * more than 60 s ahead of the clock of this gateway is ignored: all other partitions would reject the requests that carry it.
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
    if (readRevision(parsed).atMs - this.#nowMs() <= maxLeadMs) this.#value = parsed
  }
}
