import { X509Certificate } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import type { TLSSocket } from 'node:tls'
import { authenticatedUser, type User } from './user.ts'

export type FrontProxyOptions = {
  /** PEM of the authority whose certificates identify proxies. It signs nothing else: a certificate of it is never a user of its own. */
  readonly caCertificate: string
  /** Common names of the proxies. */
  readonly allowedNames: readonly string[]
}

const extraPrefix = 'x-remote-extra-'

/**
 * Proxies that have authenticated a user themselves, and name it in headers: `X-Remote-User`, `X-Remote-Group` (comma-separated or repeated), `X-Remote-Uid` and
 * `X-Remote-Extra-<key>` (the key and each value percent-encoded), as kube-apiserver's `--requestheader-*` options define them. A connection is a
 * proxy's if its client certificate is of this authority and has an allowed name; the headers of all others are ignored.
 */
export class FrontProxy {
  readonly caCertificate: string
  readonly #authority: X509Certificate
  readonly #allowedNames: ReadonlySet<string>
  readonly #known = new WeakMap<object, { readonly isProxy: boolean; readonly isOwn: boolean; readonly expiresMs: number }>()

  /** @throws {TypeError} if the certificate cannot be read, or no name is allowed. */
  constructor({ caCertificate, allowedNames }: FrontProxyOptions) {
    if (allowedNames.length === 0) throw new TypeError('frontProxy.allowedNames must have at least one name')
    try {
      this.#authority = new X509Certificate(caCertificate)
    } catch (error) {
      throw new TypeError(`frontProxy.caCertificate is not a certificate in PEM: ${(error as Error).message}`)
    }
    this.caCertificate = caCertificate
    this.#allowedNames = new Set(allowedNames)
  }

  /** Whether the client certificate of the connection is of the authority of proxies. */
  isOwn(socket: TLSSocket): boolean {
    return this.#read(socket).isOwn
  }

  /** Whether this is the connection of a proxy whose certificate is valid. */
  isProxy(socket: TLSSocket, nowMs: number): boolean {
    const { isProxy, expiresMs } = this.#read(socket)
    return isProxy && expiresMs > nowMs
  }

  /** The user that a proxy names; undefined if it names none. */
  userOf(headers: IncomingHttpHeaders): User | undefined {
    const name = headers['x-remote-user']
    if (typeof name !== 'string' || name === '') return undefined
    const { name: _, groups } = authenticatedUser(name, listOf(headers['x-remote-group']))
    const uid = headers['x-remote-uid']
    const extra: Record<string, readonly string[]> = {}
    for (const [header, value] of Object.entries(headers)) {
      if (!header.startsWith(extraPrefix) || value === undefined) continue
      extra[decode(header.slice(extraPrefix.length))] = listOf(value).map(decode)
    }
    return { name, groups, ...(typeof uid === 'string' && uid && { uid }), ...(Object.keys(extra).length > 0 && { extra }) }
  }

  #read(socket: TLSSocket) {
    let found = this.#known.get(socket)
    if (!found) {
      found = this.#verify(socket)
      this.#known.set(socket, found)
    }
    return found
  }

  #verify(socket: TLSSocket) {
    const none = { isProxy: false, isOwn: false, expiresMs: 0 }
    const certificate = socket.authorized ? socket.getPeerX509Certificate?.() : undefined
    if (!certificate?.checkIssued(this.#authority) || !certificate.verify(this.#authority.publicKey)) return none
    const { CN: names } = socket.getPeerCertificate().subject as { CN?: string | string[] }
    const isProxy = typeof names === 'string' && this.#allowedNames.has(names)
    return { isProxy, isOwn: true, expiresMs: Date.parse(certificate.validTo) }
  }
}

/** Repeated headers arrive joined with a comma. */
function listOf(value: string | string[] | undefined): string[] {
  if (value === undefined) return []
  return (Array.isArray(value) ? value : value.split(',')).map(each => each.trim()).filter(each => each !== '')
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}
