import { readFile } from 'node:fs/promises'
import type { ClusterAccess } from './cluster-access.ts'
import { type ExecCredential, runExecPlugin } from './exec-plugin.ts'

/** What to add to a request. A changed `certificate` requires new connections. */
export type Authentication = { authorization: string | undefined; certificate: { cert: string; key: string } | undefined }

/** Token files are read again after this long, as in client-go: kubelet renews them well before they expire. */
const tokenFileMs = 60_000
/** A plugin's credential is renewed this long before it expires. */
const execLeewayMs = 60_000

/** Keeps the credentials of one cluster up to date: token files are read again every minute, exec plugins run again before expiry. */
export class Authenticator {
  readonly #access: ClusterAccess
  #current: { authentication: Authentication; validUntilMs: number } | undefined
  #renewal: Promise<Authentication> | undefined

  constructor(access: ClusterAccess) {
    this.#access = access
  }

  /** The current credentials, without a promise while they are valid. */
  get(): Authentication | Promise<Authentication> {
    const { credentials } = this.#access
    if (credentials.kind === 'dynamic-token' && this.#current?.authentication.authorization !== `Bearer ${credentials.get().trim()}`) {
      this.#current = undefined
    }
    if (this.#current && Date.now() < this.#current.validUntilMs) return this.#current.authentication
    this.#renewal ??= this.#renew().finally(() => {
      this.#renewal = undefined
    })
    return this.#renewal
  }

  /** After a 401: discards credentials that may have expired. Returns false if reading them again cannot help. */
  invalidate(used: Authentication): boolean {
    const { kind } = this.#access.credentials
    if (kind !== 'token-file' && kind !== 'exec') return false
    if (this.#current?.authentication === used) this.#current = undefined
    return true
  }

  /** What to do about a 401, for its error message. Names the expiry of a token, but no part of the token. */
  unauthorizedHint(): string {
    const { credentials, source, clientCertificate } = this.#access
    const rejected = `the server rejected the credentials of ${source}`
    const token = /^Bearer (.+)$/.exec(this.#current?.authentication.authorization ?? '')?.[1]
    const expiredMs = token === undefined ? undefined : expiryOfJwt(token)
    if (expiredMs !== undefined && expiredMs <= Date.now()) {
      return `${rejected}: its token expired at ${new Date(expiredMs).toISOString()}, get a new one`
    }
    switch (credentials.kind) {
      case 'none':
        return clientCertificate
          ? `${rejected}: has the client certificate expired, and does it belong to this cluster?`
          : `${source} has no credentials: set a token, a client certificate or an exec plugin`
      case 'token':
      case 'dynamic-token':
      case 'token-file':
        return `${rejected}: does the token belong to this cluster, and is it still valid?`
      case 'basic':
        return `${rejected}: Kubernetes removed basic authentication in 1.19, use a token`
      case 'exec':
        return `${rejected}: log in again with ${JSON.stringify(credentials.plugin.command)}`
    }
  }

  async #renew(): Promise<Authentication> {
    const { credentials, source } = this.#access
    const fixed = Number.POSITIVE_INFINITY
    switch (credentials.kind) {
      case 'none':
        return this.#store(undefined, undefined, fixed)
      case 'token':
        return this.#store(`Bearer ${credentials.token.trim()}`, undefined, fixed)
      case 'dynamic-token':
        return this.#store(`Bearer ${credentials.get().trim()}`, undefined, fixed)
      case 'basic': {
        const pair = Buffer.from(`${credentials.username}:${credentials.password}`).toString('base64')
        return this.#store(`Basic ${pair}`, undefined, fixed)
      }
      case 'token-file': {
        const token = await readFile(credentials.path, 'utf8').catch(error => {
          throw new Error(`cannot read token file ${credentials.path} of ${source} (${error.code})`, { cause: error })
        })
        if (token.trim() === '') throw new Error(`token file ${credentials.path} of ${source} is empty`)
        return this.#store(`Bearer ${token.trim()}`, undefined, Date.now() + tokenFileMs)
      }
      case 'exec': {
        const credential = await runExecPlugin(credentials.plugin, this.#access)
        return this.#store(credential.token && `Bearer ${credential.token}`, certificateOf(credential), expiryOf(credential))
      }
    }
  }

  #store(authorization: string | undefined, certificate: Authentication['certificate'], validUntilMs: number): Authentication {
    const authentication = { authorization, certificate }
    this.#current = { authentication, validUntilMs }
    return authentication
  }
}

function certificateOf({ clientCertificate, clientKey }: ExecCredential): Authentication['certificate'] {
  return clientCertificate && clientKey ? { cert: clientCertificate, key: clientKey } : undefined
}

function expiryOf({ expiresAtMs }: ExecCredential): number {
  if (expiresAtMs === undefined || Number.isNaN(expiresAtMs)) return Number.POSITIVE_INFINITY
  // A credential that is valid for less than the margin would otherwise be renewed for every request.
  return Math.max(expiresAtMs - execLeewayMs, Date.now() + 1_000)
}

/** The expiry of a JSON Web Token, in milliseconds since 1970; undefined for other tokens. Does not verify the signature. */
function expiryOfJwt(token: string): number | undefined {
  try {
    const { exp } = JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString('utf8')) as { exp?: unknown }
    return typeof exp === 'number' ? exp * 1_000 : undefined
  } catch {
    return undefined
  }
}
