import { createHmac, hash, randomBytes, timingSafeEqual } from 'node:crypto'
import { join } from 'node:path'
import { readOrCreate, type Table } from '../storage/index.ts'
import type { ReviewedTokens } from './reviewed-tokens.ts'
import type { ReviewedToken, ServiceAccountTokens } from './service-account-tokens.ts'
import { decode, encode } from './signing-key.ts'
import { adminsGroup, authenticatedUser, type User } from './user.ts'

const issuer = 'oarlock'
const maxCached = 10_000
const maxTokenLength = 8_192

/**
 * The user of a token that `issueToken` issues. A token that is `boundTo` a Secret is invalid as soon as the Secret is deleted; the content
 * of the Secret does not matter.
 */
export type IssueTokenOptions = {
  name: string
  groups: string[]
  ttlMs: number
  boundTo?: { namespace: string; name: string; uid: string }
}

/** `isLive` returns whether the objects that the token is bound to still exist; absent for an unbound token. */
export type VerifiedToken = { readonly user: User; readonly expiresMs: number; readonly isLive?: () => boolean }

/**
 * Bearer tokens: the administrator's token, which is random and kept in the data directory; issued tokens, which are signed (HS256) and not
 * stored, so that they survive a restart and expire; and the tokens of service accounts.
 */
export class Tokens {
  readonly adminToken: string
  readonly #adminDigest: Buffer
  readonly #key: Buffer
  readonly #serviceAccounts: ServiceAccountTokens
  readonly #secrets: Pick<Table, 'get'>
  readonly #reviewed: Pick<ReviewedTokens, 'find'> | undefined
  // By digest, not by token: the time of a lookup must not depend on the token.
  readonly #cache = new Map<string, VerifiedToken>()

  /** @param reviewed the tokens that only another server knows. */
  constructor(
    pkiDir: string,
    serviceAccounts: ServiceAccountTokens,
    secrets: Pick<Table, 'get'>,
    reviewed?: Pick<ReviewedTokens, 'find'> | undefined,
  ) {
    this.#reviewed = reviewed
    this.#serviceAccounts = serviceAccounts
    this.#secrets = secrets
    this.adminToken = readOrCreate(join(pkiDir, 'admin-token'), () => randomBytes(32).toString('base64url')).trim()
    this.#key = Buffer.from(readOrCreate(join(pkiDir, 'token-key'), () => randomBytes(32).toString('base64url')).trim(), 'base64url')
    this.#adminDigest = digest(this.adminToken)
  }

  issue({ name, groups, ttlMs, boundTo }: IssueTokenOptions, nowMs: number): string {
    if (!name) throw new TypeError('the name of the user of a token must not be empty')
    if (!Number.isFinite(ttlMs) || ttlMs <= 0) throw new RangeError(`ttlMs must be a number above 0, got ${ttlMs}`)
    const times = { iat: Math.floor(nowMs / 1_000), exp: Math.ceil((nowMs + ttlMs) / 1_000) }
    const secret = boundTo && { namespace: boundTo.namespace, name: boundTo.name, uid: boundTo.uid }
    const claims = { iss: issuer, sub: name, groups, ...times, ...(secret && { secret }) }
    const signed = `${encode({ alg: 'HS256', typ: 'JWT' })}.${encode(claims)}`
    return `${signed}.${this.#sign(signed).toString('base64url')}`
  }

  /** The user of a token and its expiry; undefined for an invalid or expired token. */
  verify(token: string, nowMs: number): VerifiedToken | undefined {
    if (token.length === 0 || token.length > maxTokenLength) return undefined
    const tokenDigest = digest(token)
    if (timingSafeEqual(tokenDigest, this.#adminDigest)) return admin
    const memory = tokenDigest.toString('latin1')
    const remembered = this.#cache.get(memory)
    if (remembered) {
      if (remembered.expiresMs > nowMs && isLive(remembered)) return remembered
      this.#cache.delete(memory)
      return undefined
    }
    const read = this.#read(token) ?? this.#serviceAccounts.read(token, this.#serviceAccounts.audiences, nowMs)
    if (!read || typeof read === 'string' || read.expiresMs <= nowMs) return this.#reviewed?.find(token)
    if (this.#cache.size >= maxCached) this.#cache.clear()
    this.#cache.set(memory, read)
    return read
  }

  /**
   * As {@link verify}, for a TokenReview: returns why the token is invalid, or for which of the `audiences` it is valid. Tokens without an
   * audience are valid for this server's own.
   */
  review(token: string, audiences: readonly string[], nowMs: number): ReviewedToken | string {
    const read = token.length <= maxTokenLength ? this.#serviceAccounts.read(token, audiences, nowMs) : undefined
    if (read !== undefined && typeof read !== 'string') return read
    const known = this.verify(token, nowMs)
    const own = audiences.filter(audience => this.#serviceAccounts.audiences.includes(audience))
    return known && own.length > 0 ? { ...known, audiences: own } : (read ?? 'invalid bearer token')
  }

  #read(token: string): VerifiedToken | undefined {
    const end = token.lastIndexOf('.')
    if (end < 0) return undefined
    const signature = Buffer.from(token.slice(end + 1), 'base64url')
    const expected = this.#sign(token.slice(0, end))
    if (signature.length !== expected.length || !timingSafeEqual(signature, expected)) return undefined
    const [header, claims] = token.slice(0, end).split('.').map(decode)
    if (header?.alg !== 'HS256' || claims?.iss !== issuer) return undefined
    const { sub, groups, exp, secret } = claims
    if (typeof sub !== 'string' || typeof exp !== 'number' || !Array.isArray(groups)) return undefined
    const known: VerifiedToken = { user: authenticatedUser(sub, groups.map(String)), expiresMs: exp * 1_000 }
    if (secret === undefined) return known
    const { namespace, name, uid } = secret as Record<string, unknown>
    const isLive = () => this.#secrets.get(`${namespace}/${name}`)?.uid === uid
    return isLive() ? { ...known, isLive } : undefined
  }

  #sign(text: string): Buffer {
    return createHmac('sha256', this.#key).update(text).digest()
  }
}

/** Whether the objects that a verified token is bound to still exist. */
export function isLive({ isLive: ask }: VerifiedToken): boolean {
  return ask === undefined || ask()
}

const admin: VerifiedToken = { user: authenticatedUser('oarlock:admin', [adminsGroup]), expiresMs: Number.POSITIVE_INFINITY }

function digest(text: string): Buffer {
  return hash('sha256', text, 'buffer')
}
