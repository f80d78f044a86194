import { hash } from 'node:crypto'
import type { Client } from '../../kubernetes/client/index.ts'
import { ClientLimiter, type ClientLimits, networkOf } from '../../kubernetes/util/index.ts'
import { ExpiringCache } from './expiring-cache.ts'
import { type ReviewedUser, tokenReviewResource } from './review-resources.ts'

/**
 * A deleted ServiceAccount can be used for this much longer, as with kube-apiserver, which caches tokens for ten seconds. A token that is
 * not valid yet, because a cache of the API server is behind, must not stay so.
 */
export const ttlMs = { authenticated: 10_000, rejected: 1_000 }
/** Apart, so that a client that sends many invalid tokens does not displace the valid ones. */
const maxEntries = { authenticated: 10_000, rejected: 1_000 }
/** More bytes than any token of Kubernetes; the API server is not asked about longer ones. */
const maxTokenLength = 16_384
/** Clients without a valid token must keep neither the API server busy nor other clients waiting. */
const reviewLimits: ClientLimits = { concurrent: 64, concurrentPerClient: 16, waitingPerClient: 256, waiting: 4_096 }

/** `remoteAddress` is that of the client, whose reviews are limited apart from those of other addresses; or another name of the client, such as its user. */
export type TokenAuthenticator = (token: string, remoteAddress?: string) => Promise<ReviewedUser | undefined>

export type TokenReviewOptions = {
  /** A monotonic clock in milliseconds; default `performance.now`. */
  nowMs?: () => number
  limits?: ClientLimits
  /** How long a valid token is not reviewed again. Default 10,000. */
  authenticatedMs?: number
}

/**
 * Authenticates the bearer tokens of a listener by TokenReview, as Kubernetes' components do that have one: the user, or undefined for an
 * invalid token. Only a hash of a token is kept. Any text is reviewed: tokens of kube-apiserver need no format.
 * @param client with the permission to create TokenReviews (`system:auth-delegator`).
 * The result throws a {StatusError} or {ConnectionError} if the API server does not decide, and a {LimitExceededError} while too many
 * reviews wait.
 */
export function authenticateByTokenReview(client: Client, options: TokenReviewOptions = {}): TokenAuthenticator {
  const { nowMs = () => performance.now(), limits = reviewLimits, authenticatedMs = ttlMs.authenticated } = options
  const authenticated = new ExpiringCache<ReviewedUser>({ maxEntries: maxEntries.authenticated, nowMs })
  const rejected = new ExpiringCache<undefined>({ maxEntries: maxEntries.rejected, nowMs })
  const limiter = new ClientLimiter(limits)
  /** Concurrent requests with one token share a review. Bounded by `limits`. */
  const pending = new Map<string, Promise<ReviewedUser | undefined>>()
  const review = async (key: string, token: string): Promise<ReviewedUser | undefined> => {
    const startedMs = nowMs()
    const { status } = await client.resource(tokenReviewResource).create({ metadata: { name: '' }, spec: { token } })
    const { username, groups = [], uid, extra } = status?.user ?? {}
    if (status?.authenticated !== true || !username) {
      rejected.set(key, undefined, startedMs + ttlMs.rejected)
      return undefined
    }
    const user = { name: username, groups, ...(uid && { uid }), ...(extra && { extra }) }
    authenticated.set(key, user, startedMs + authenticatedMs)
    return user
  }
  return async (token, remoteAddress) => {
    if (token === '' || token.length > maxTokenLength) return undefined
    const key = hash('sha256', token)
    const known = authenticated.peek(key) ?? rejected.peek(key) ?? pending.get(key)
    if (known) return await known
    const result = limiter.run(networkOf(remoteAddress), () => review(key, token)).finally(() => pending.delete(key))
    pending.set(key, result)
    return await result
  }
}
