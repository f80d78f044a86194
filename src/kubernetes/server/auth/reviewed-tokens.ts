import { hash } from 'node:crypto'
import { decode } from './signing-key.ts'
import type { VerifiedToken } from './tokens.ts'
import { authenticatedUser, type User } from './user.ts'

/**
 * The user of a token that this server does not know, by a TokenReview of a server that does; undefined for an invalid one. It limits and remembers its
 * requests itself, because anyone can send a token, and decides what is valid while that server does not answer.
 */
export type ReviewToken = (token: string, remoteAddress: string | undefined) => Promise<User | undefined>

/** A review is valid for this long: so much later ends a token whose Secret or account was deleted on the other server. */
const validMs = 10_000
/** A token in use is reviewed again when this is left, so that a watch with it continues. */
const refreshAtMs = 5_000
/** Valid ones: all workers of a fleet. */
const maxTokens = 50_000

type Entry = { readonly verified: VerifiedToken; validUntilMs: number; isRefreshing: boolean }

/** Tokens that another server vouches for, such as those of workers, which are bound to Secrets of the home partition. */
export class ReviewedTokens {
  readonly #review: ReviewToken
  readonly #nowMs: () => number
  /** By digest, the oldest first. */
  readonly #entries = new Map<string, Entry>()

  constructor(review: ReviewToken, nowMs: () => number) {
    this.#review = review
    this.#nowMs = nowMs
  }

  /** The token, if it was reviewed and that is valid still. */
  find(token: string): VerifiedToken | undefined {
    const key = hash('sha256', token)
    const entry = this.#entries.get(key)
    if (!entry) return undefined
    const leftMs = entry.validUntilMs - this.#nowMs()
    if (leftMs <= 0 || entry.verified.expiresMs <= this.#nowMs()) return undefined
    if (leftMs <= refreshAtMs && !entry.isRefreshing) void this.#refresh(token, entry)
    return entry.verified
  }

  /** Asks the other server. Afterwards {@link find} returns the token if it is valid. @throws what the review throws. */
  async review(token: string, remoteAddress: string | undefined): Promise<void> {
    const key = hash('sha256', token)
    const user = await this.#review(token, remoteAddress)
    this.#entries.delete(key)
    if (!user) return
    const isLive = () => {
      const known = this.#entries.get(key)
      if (!known || known.validUntilMs <= this.#nowMs()) return false
      // A connection or a watch keeps what was verified, and asks only this.
      this.find(token)
      return true
    }
    const verified = { user: { ...user, ...authenticatedUser(user.name, user.groups) }, expiresMs: expiryOf(token), isLive }
    this.#entries.set(key, { verified, validUntilMs: this.#nowMs() + validMs, isRefreshing: false })
    if (this.#entries.size > maxTokens) this.#entries.delete(this.#entries.keys().next().value as string)
  }

  async #refresh(token: string, entry: Entry): Promise<void> {
    entry.isRefreshing = true
    try {
      if (await this.#review(token, undefined)) entry.validUntilMs = this.#nowMs() + validMs
      else this.#entries.delete(hash('sha256', token))
    } catch {
      // The request that finds it expired gets the error.
    } finally {
      entry.isRefreshing = false
    }
  }
}

/** As the token states it; it was valid, so that the statement is true. Infinity without one. */
function expiryOf(token: string): number {
  const { exp } = decode(token.split('.')[1] ?? '') ?? {}
  return typeof exp === 'number' ? exp * 1_000 : Number.POSITIVE_INFINITY
}
