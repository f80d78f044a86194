import { hash, randomBytes } from 'node:crypto'
import type { ConsoleUser } from './sessions.ts'

const validMs = 10 * 60_000
/** More were never used: the oldest are forgotten (invariant 10). */
const maxLinks = 100

export type LinkedUser = {
  readonly user: ConsoleUser
  /** `oidc`: the provider has authenticated the user, and the page exchanges the link immediately. */
  readonly method: 'link' | 'oidc'
  /** The value of a cookie of the browser that the provider has sent back: no other one can use the link. Default: any browser can. */
  readonly browser?: string
  /** Of a user of the provider. */
  readonly idToken?: string
  /** When the user was authenticated, in milliseconds since the epoch. Default: when the link is used. */
  readonly authenticatedMs?: number
}

/** Secrets that sign a user in once, within ten minutes. Only their hashes are kept. */
export class OneTimeLinks {
  readonly #links = new Map<string, LinkedUser & { readonly expiresAtMs: number }>()
  readonly #nowMs: () => number

  /** @param nowMs a monotonic clock in milliseconds. */
  constructor(nowMs: () => number = () => performance.now()) {
    this.#nowMs = nowMs
  }

  issue(linked: LinkedUser): string {
    const secret = randomBytes(32).toString('base64url')
    this.#links.set(hash('sha256', secret), { ...linked, expiresAtMs: this.#nowMs() + validMs })
    for (const oldest of this.#links.keys()) {
      if (this.#links.size <= maxLinks) break
      this.#links.delete(oldest)
    }
    return secret
  }

  /** The user of a link that was not used yet; undefined for any other text. */
  redeem(secret: string): LinkedUser | undefined {
    const key = hash('sha256', secret)
    const link = this.#links.get(key)
    this.#links.delete(key)
    return link && this.#nowMs() < link.expiresAtMs ? link : undefined
  }
}
