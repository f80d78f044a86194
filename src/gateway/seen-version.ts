import { parseRevision } from '../kubernetes/util/index.ts'

/** The highest resource version that any partition has told this gateway: sent with each request, so that what happens later gets a higher one. */
export class SeenVersion {
  #value = 0

  get value(): number {
    return this.#value
  }

  /** What is no version is ignored. */
  raise(version: number | string | string[] | undefined): void {
    const parsed = typeof version === 'string' ? parseRevision(version) : version
    if (typeof parsed === 'number' && parsed > this.#value) this.#value = parsed
  }
}
