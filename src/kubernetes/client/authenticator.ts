import { readFile } from 'node:fs/promises'
import type { ClusterAccess } from './cluster-access.ts'
import { type ExecCredential, runExecPlugin } from './exec-plugin.ts'

/** What to add to a request. A changed `certificate` means new connections. */
export type Authentication = { authorization: string | undefined; certificate: { cert: string; key: string } | undefined }

/** Token files are read again after this long, as client-go does: kubelet renews them well before they end. */
const tokenFileMs = 60_000
/** A plugin's credential is renewed this long before it ends. */
const execLeewayMs = 60_000

/** Keeps the credentials of one cluster fresh: static ones at once, token files each minute, exec plugins by their expiry. */
export class Authenticator {
  readonly #access: ClusterAccess
  #current: { authentication: Authentication; freshUntilMs: number } | undefined
  #renewal: Promise<Authentication> | undefined

  constructor(access: ClusterAccess) {
    this.#access = access
  }

  /** The current credentials, without waiting if they are fresh. */
  get(): Authentication | Promise<Authentication> {
    const { credentials } = this.#access
    if (credentials.kind === 'changing-token' && this.#current?.authentication.authorization !== `Bearer ${credentials.get().trim()}`) {
      this.#current = undefined
    }
    if (this.#current && Date.now() < this.#current.freshUntilMs) return this.#current.authentication
    this.#renewal ??= this.#renew().finally(() => {
      this.#renewal = undefined
    })
    return this.#renewal
  }

  /** After a 401: forgets what may have ended. Returns false if reading it again cannot change anything. */
  expire(used: Authentication): boolean {
    const { kind } = this.#access.credentials
    if (kind !== 'token-file' && kind !== 'exec') return false
    if (this.#current?.authentication === used) this.#current = undefined
    return true
  }

  /** What to do about a 401, for its message. Tells when a token ended, and never any of it. */
  adviceAfterRefusal(): string {
    const { credentials, source, clientCertificate } = this.#access
    const refused = `the server does not accept the credentials of ${source}`
    const token = /^Bearer (.+)$/.exec(this.#current?.authentication.authorization ?? '')?.[1]
    const endedMs = token === undefined ? undefined : expiryOfJwt(token)
    if (endedMs !== undefined && endedMs <= Date.now()) {
      return `${refused}: its token ended at ${new Date(endedMs).toISOString()}, get a new one`
    }
    switch (credentials.kind) {
      case 'none':
        return clientCertificate
          ? `${refused}: has the client certificate ended, or is it of another cluster?`
          : `${source} has no credentials: give a token, a client certificate or an exec plugin`
      case 'token':
      case 'changing-token':
      case 'token-file':
        return `${refused}: is the token one of this cluster, and still valid?`
      case 'basic':
        return `${refused}: Kubernetes has no user names with passwords since 1.19, give a token`
      case 'exec':
        return `${refused}: log in again with what ${JSON.stringify(credentials.plugin.command)} belongs to`
    }
  }

  async #renew(): Promise<Authentication> {
    const { credentials, source } = this.#access
    const fixed = Number.POSITIVE_INFINITY
    switch (credentials.kind) {
      case 'none':
        return this.#keep(undefined, undefined, fixed)
      case 'token':
        return this.#keep(`Bearer ${credentials.token.trim()}`, undefined, fixed)
      case 'changing-token':
        return this.#keep(`Bearer ${credentials.get().trim()}`, undefined, fixed)
      case 'basic': {
        const pair = Buffer.from(`${credentials.username}:${credentials.password}`).toString('base64')
        return this.#keep(`Basic ${pair}`, undefined, fixed)
      }
      case 'token-file': {
        const token = await readFile(credentials.path, 'utf8').catch(error => {
          throw new Error(`token file ${credentials.path} of ${source} cannot be read (${error.code})`, { cause: error })
        })
        if (token.trim() === '') throw new Error(`token file ${credentials.path} of ${source} is empty`)
        return this.#keep(`Bearer ${token.trim()}`, undefined, Date.now() + tokenFileMs)
      }
      case 'exec': {
        const credential = await runExecPlugin(credentials.plugin, this.#access)
        return this.#keep(credential.token && `Bearer ${credential.token}`, certificateOf(credential), expiryOf(credential))
      }
    }
  }

  #keep(authorization: string | undefined, certificate: Authentication['certificate'], freshUntilMs: number): Authentication {
    const authentication = { authorization, certificate }
    this.#current = { authentication, freshUntilMs }
    return authentication
  }
}

function certificateOf({ clientCertificate, clientKey }: ExecCredential): Authentication['certificate'] {
  return clientCertificate && clientKey ? { cert: clientCertificate, key: clientKey } : undefined
}

function expiryOf({ expiresAtMs }: ExecCredential): number {
  if (expiresAtMs === undefined || Number.isNaN(expiresAtMs)) return Number.POSITIVE_INFINITY
  // A credential shorter than the leeway would otherwise be asked for with every request.
  return Math.max(expiresAtMs - execLeewayMs, Date.now() + 1_000)
}

/** When a JSON Web Token ends, in milliseconds since 1970; undefined for other tokens. Its signature is the server's matter. */
function expiryOfJwt(token: string): number | undefined {
  try {
    const { exp } = JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString('utf8')) as { exp?: unknown }
    return typeof exp === 'number' ? exp * 1_000 : undefined
  } catch {
    return undefined
  }
}
