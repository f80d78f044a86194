import { hash } from 'node:crypto'
import { within } from '../../util/index.ts'
import { decode } from './signing-key.ts'
import type { VerifiedToken } from './tokens.ts'
import { authenticatedUser, type User } from './user.ts'

/**
 * The user of a token that this server does not know, by a TokenReview of a server that does; undefined for an invalid one. It limits and remembers its
 * requests itself, because anyone can send a token.
 */
export type ReviewToken = (token: string, remoteAddress: string | undefined) => Promise<User | undefined>

/** A review is valid for this long: so much later ends a token whose Secret or account was deleted on the other server. */
const validMs = 10_000
/** A token in use is reviewed again when this is left, so that a watch with it continues. */
const refreshAtMs = 5_000
/** Valid ones: all workers of a fleet. */
const maxTokens = 50_000

/** While the other server does not answer, a token stays valid for this long after its last review: it could not be ended there meanwhile. */
const maxStaleMs = 12 * 3_600_000
/** How long a review of a known token may take: a server that is silent must not stop those that work. */
const defaultPatienceMs = 2_000

type Entry = { readonly verified: VerifiedToken; reviewedMs: number; validUntilMs: number; isRefreshing: boolean }

/** Tokens that another server vouches for, such as those of workers, which are bound to Secrets of the home partition. */
export class ReviewedTokens {
  readonly #review: ReviewToken
  readonly #nowMs: () => number
  /** By digest, the oldest first. */
  readonly #entries = new Map<string, Entry>()

  readonly #patienceMs: number

  constructor(review: ReviewToken, nowMs: () => number, { patienceMs = defaultPatienceMs } = {}) {
    this.#review = review
    this.#nowMs = nowMs
    this.#patienceMs = patienceMs
  }

  /** The token, if it was reviewed and that is valid still. */
  find(token: string): VerifiedToken | undefined {
    const key = hash('sha256', token)
    const entry = this.#entries.get(key)
    if (!entry) return undefined
    const leftMs = entry.validUntilMs - this.#nowMs()
    // It is kept: the other server may not answer.
    if (leftMs <= 0 || entry.verified.expiresMs <= this.#nowMs()) return undefined
    if (leftMs <= refreshAtMs && !entry.isRefreshing) void this.#refresh(token, entry)
    return entry.verified
  }

  /** Asks the other server. Afterwards {@link find} returns the token if it is valid. @throws if that server does not answer, and the token is not known. */
  async review(token: string, remoteAddress: string | undefined): Promise<void> {
    const key = hash('sha256', token)
    let user: User | undefined
    try {
      const answer = this.#review(token, remoteAddress)
      user = await (this.#entries.has(key) ? within(answer, this.#patienceMs) : answer)
    } catch (error) {
      if (this.#extend(this.#entries.get(key))) return
      throw error
    }
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
    const nowMs = this.#nowMs()
    this.#entries.set(key, { verified, reviewedMs: nowMs, validUntilMs: nowMs + validMs, isRefreshing: false })
    if (this.#entries.size > maxTokens) this.#entries.delete(this.#entries.keys().next().value as string)
  }

  async #refresh(token: string, entry: Entry): Promise<void> {
    entry.isRefreshing = true
    try {
      const user = await within(this.#review(token, undefined), this.#patienceMs)
      if (!user) {
        this.#entries.delete(hash('sha256', token))
        return
      }
      entry.reviewedMs = this.#nowMs()
      entry.validUntilMs = entry.reviewedMs + validMs
    } catch {
      this.#extend(entry)
    } finally {
      entry.isRefreshing = false
    }
  }
  /** The other server does not answer. Returns whether the token stays valid. */
  #extend(entry: Entry | undefined): boolean {
    const nowMs = this.#nowMs()
    if (!entry || nowMs - entry.reviewedMs > maxStaleMs) return false
    entry.validUntilMs = nowMs + validMs
    return true
  }
}

/** As the token states it; it was valid, so that the statement is true. Infinity without one. */
function expiryOf(token: string): number {
  const { exp } = decode(token.split('.')[1] ?? '') ?? {}
  return typeof exp === 'number' ? exp * 1_000 : Number.POSITIVE_INFINITY
}
