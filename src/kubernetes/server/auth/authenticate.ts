import type { IncomingHttpHeaders } from 'node:http'
import type { Socket } from 'node:net'
import type { TLSSocket } from 'node:tls'
import type { FrontProxy } from './front-proxy.ts'
import { isLive, type Tokens, type VerifiedToken } from './tokens.ts'
import { authenticatedUser, type User } from './user.ts'

/** `wrong`: the credential is invalid. The request is rejected, not treated as anonymous. */
export type Authentication = { user: User } | 'none' | 'wrong'

// The certificate of a connection does not change while it is open, but it may expire.
const byCertificate = new WeakMap<object, { user: User; expiresMs: number } | 'none'>()

// The verified token of the last request on a connection: clients send the same one with every request.
const byConnection = new WeakMap<object, VerifiedToken & { authorization: string }>()

/** What requests are authenticated by. */
export type Authenticators = { readonly tokens: Tokens; readonly frontProxy?: FrontProxy | undefined }

/** Authenticates a request by what a trusted proxy says, by its bearer token, or else by the client certificate of its connection. */
export function authenticate(
  request: { readonly headers: IncomingHttpHeaders; readonly socket: Socket },
  { tokens, frontProxy }: Authenticators,
  nowMs: number,
): Authentication {
  const { authorization } = request.headers
  const { socket } = request
  if (frontProxy?.isOwn(socket as TLSSocket)) {
    // Never as a user of its own: a request that a proxy passes on without its user would have the rights of the proxy.
    const user = frontProxy.isProxy(socket as TLSSocket, nowMs) ? frontProxy.userOf(request.headers) : undefined
    return user ? { user } : 'wrong'
  }
  if (authorization !== undefined) {
    const last = byConnection.get(socket)
    if (last !== undefined && last.authorization === authorization && last.expiresMs > nowMs && isLive(last)) return last
    const isBearer = authorization.length > 7 && authorization.slice(0, 7).toLowerCase() === 'bearer '
    const found = isBearer ? tokens.verify(authorization.slice(7).trim(), nowMs) : undefined
    if (!found) return 'wrong'
    byConnection.set(socket, { authorization, ...found })
    return found
  }
  let known = byCertificate.get(socket)
  if (known === undefined) {
    known = certificateUser(socket as TLSSocket) ?? 'none'
    byCertificate.set(socket, known)
  }
  if (known === 'none') return 'none'
  return known.expiresMs > nowMs ? known : 'wrong'
}

function certificateUser(socket: TLSSocket): { user: User; expiresMs: number } | undefined {
  if (!socket.authorized) return undefined
  const { subject, valid_to: validTo } = socket.getPeerCertificate()
  const names = asArray(subject?.CN)
  return names[0] ? { user: authenticatedUser(names[0], asArray(subject?.O)), expiresMs: Date.parse(validTo) } : undefined
}

// Repeated attributes are an array, although the types declare a string.
function asArray(value: string | string[] | undefined): string[] {
  return value === undefined ? [] : Array.isArray(value) ? value : [value]
}
