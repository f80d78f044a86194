import { hash } from 'node:crypto'
import { StatusError } from '../../kubernetes/object/index.ts'
import { LimitExceededError, within } from '../../kubernetes/util/index.ts'
import type { TokenAuthenticator } from './authenticate-by-token-review.ts'
import type { ReviewedUser } from './review-resources.ts'

export type RememberedReviewsOptions = {
  /** Wall clock in milliseconds; default `Date.now`. */
  readonly nowMs?: () => number
  /** For how long a token that was valid is accepted without a review. Default 12 hours. */
  readonly maxStaleMs?: number
  /** How long a review of a known token may take. Default 2,000. */
  readonly patienceMs?: number
}

/** After a partition has not answered, known tokens are not reviewed for this long. */
const pauseMs = 5_000
/** All workers of a fleet. */
const maxEntries = 50_000

type Entry = { readonly user: ReviewedUser; readonly reviewedMs: number; readonly expiresMs: number }

/**
 * Reviews of tokens that outlive an outage of the partition that does them: while it does not answer, a token that was valid at its last review stays valid until it
 * expires. It could not be ended meanwhile either: what it is bound to is in that partition. Without this, the workers of a fleet would stop with home.
 */
export function rememberReviews(review: TokenAuthenticator, options: RememberedReviewsOptions = {}): TokenAuthenticator {
  const { nowMs = Date.now, maxStaleMs = 12 * 3_600_000, patienceMs = 2_000 } = options
  const entries = new Map<string, Entry>()
  let askAgainAtMs = 0
  const knownOf = (key: string): ReviewedUser | undefined => {
    const entry = entries.get(key)
    const isValid = entry && nowMs() < Math.min(entry.expiresMs, entry.reviewedMs + maxStaleMs)
    return isValid ? entry.user : undefined
  }
  return async (token, remoteAddress) => {
    const key = hash('sha256', token)
    const known = knownOf(key)
    if (known && nowMs() < askAgainAtMs) return known
    try {
      // Limited as its user: others of its network, who have no valid token, do not delay it.
      const user = await (known ? within(review(token, `user ${known.name}`), patienceMs) : review(token, remoteAddress))
      entries.delete(key)
      if (user) entries.set(key, { user, reviewedMs: nowMs(), expiresMs: expiryOf(token) })
      if (entries.size > maxEntries) entries.delete(entries.keys().next().value as string)
      return user
    } catch (error) {
      // Of this client, not of the partition: else one that sends many tokens could keep a token valid that has ended.
      if (error instanceof LimitExceededError) throw new StatusError('TooManyRequests', error.message, { cause: error })
      // The answer of a server that works. One that has too many requests has not decided about this token, and is asked about the next one.
      const hasTooMany = error instanceof StatusError && error.code === 429
      if (error instanceof StatusError && error.code < 500 && !hasTooMany) throw error
      if (!hasTooMany) askAgainAtMs = nowMs() + pauseMs
      if (known) return known
      throw error
    }
  }
}

/** When a token of a server expires, as it states itself; it was valid, so that the statement is true. Infinity without one. */
function expiryOf(token: string): number {
  try {
    const { exp } = JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString()) as { exp?: unknown }
    return typeof exp === 'number' ? exp * 1_000 : Number.POSITIVE_INFINITY
  } catch {
    return Number.POSITIVE_INFINITY
  }
}
