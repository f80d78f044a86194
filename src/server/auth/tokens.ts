import { createHmac, hash, randomBytes, timingSafeEqual } from 'node:crypto'
import { join } from 'node:path'
import { readOrMake } from './secret-file.ts'
import { adminsGroup, named, type User } from './user.ts'

const issuer = 'oarlock'
const maxRemembered = 10_000

/** Whom `issueToken` makes a token for. */
export type TokenRequest = { name: string; groups: string[]; ttlMs: number }

export type KnownToken = { readonly user: User; readonly expiresMs: number }

/**
 * Bearer tokens: the administrator's, random and kept in the data directory, and issued ones, which are signed
 * (HS256) and not stored, so they outlive a restart and end by themselves.
 */
export class Tokens {
  readonly adminToken: string
  readonly #adminDigest: Buffer
  readonly #key: Buffer
  // By digest, never by the token itself: a lookup that is not constant in time says nothing about a token.
  readonly #remembered = new Map<string, KnownToken>()

  constructor(pkiDir: string) {
    this.adminToken = readOrMake(join(pkiDir, 'admin-token'), () => randomBytes(32).toString('base64url')).trim()
    this.#key = Buffer.from(readOrMake(join(pkiDir, 'token-key'), () => randomBytes(32).toString('base64url')).trim(), 'base64url')
    this.#adminDigest = digest(this.adminToken)
  }

  issue({ name, groups, ttlMs }: TokenRequest, nowMs: number): string {
    if (!name) throw new TypeError('a token needs the name of its user')
    if (!Number.isFinite(ttlMs) || ttlMs <= 0) throw new RangeError(`ttlMs must be a number above 0, got ${ttlMs}`)
    const claims = { iss: issuer, sub: name, groups, iat: Math.floor(nowMs / 1_000), exp: Math.ceil((nowMs + ttlMs) / 1_000) }
    const signed = `${encode({ alg: 'HS256', typ: 'JWT' })}.${encode(claims)}`
    return `${signed}.${this.#sign(signed).toString('base64url')}`
  }

  /** The user of a token and until when, or undefined for one that is wrong or over. */
  verify(token: string, nowMs: number): KnownToken | undefined {
    if (token.length === 0 || token.length > 8_192) return undefined
    const tokenDigest = digest(token)
    if (timingSafeEqual(tokenDigest, this.#adminDigest)) return admin
    const memory = tokenDigest.toString('latin1')
    const remembered = this.#remembered.get(memory)
    if (remembered) return remembered.expiresMs > nowMs ? remembered : undefined
    const read = this.#read(token)
    if (!read || read.expiresMs <= nowMs) return undefined
    if (this.#remembered.size >= maxRemembered) this.#remembered.clear()
    this.#remembered.set(memory, read)
    return read
  }

  #read(token: string): KnownToken | undefined {
    const end = token.lastIndexOf('.')
    if (end < 0) return undefined
    const signature = Buffer.from(token.slice(end + 1), 'base64url')
    const expected = this.#sign(token.slice(0, end))
    if (signature.length !== expected.length || !timingSafeEqual(signature, expected)) return undefined
    const [header, claims] = token.slice(0, end).split('.').map(decode)
    if (header?.alg !== 'HS256' || claims?.iss !== issuer) return undefined
    const { sub, groups, exp } = claims
    if (typeof sub !== 'string' || typeof exp !== 'number' || !Array.isArray(groups)) return undefined
    return { user: named(sub, groups.map(String)), expiresMs: exp * 1_000 }
  }

  #sign(text: string): Buffer {
    return createHmac('sha256', this.#key).update(text).digest()
  }
}

const admin: KnownToken = { user: named('oarlock:admin', [adminsGroup]), expiresMs: Number.POSITIVE_INFINITY }

function digest(text: string): Buffer {
  return hash('sha256', text, 'buffer')
}

function encode(value: object): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url')
}

function decode(part: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(Buffer.from(part, 'base64url').toString())
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : undefined
  } catch {
    return undefined
  }
}
