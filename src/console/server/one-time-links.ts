import { hash, randomBytes } from 'node:crypto'
import type { ConsoleUser } from './sessions.ts'

const validMs = 10 * 60_000
/** More were never used: the oldest are forgotten (invariant 10). */
const maxLinks = 100

/** Secrets that sign a user in once, within ten minutes. Only their hashes are kept. */
export class OneTimeLinks {
  readonly #links = new Map<string, { readonly user: ConsoleUser; readonly expiresAtMs: number }>()
  readonly #nowMs: () => number

  /** @param nowMs a monotonic clock in milliseconds. */
  constructor(nowMs: () => number = () => performance.now()) {
    this.#nowMs = nowMs
  }

  issue(user: ConsoleUser): string {
    const secret = randomBytes(32).toString('base64url')
    this.#links.set(hash('sha256', secret), { user, expiresAtMs: this.#nowMs() + validMs })
    for (const oldest of this.#links.keys()) {
      if (this.#links.size <= maxLinks) break
      this.#links.delete(oldest)
    }
    return secret
  }

  /** The user of a link that was not used yet; undefined for any other text. */
  redeem(secret: string): ConsoleUser | undefined {
    const key = hash('sha256', secret)
    const link = this.#links.get(key)
    this.#links.delete(key)
    return link && this.#nowMs() < link.expiresAtMs ? link.user : undefined
  }
}
