import type { IncomingHttpHeaders } from 'node:http'
import type { Socket } from 'node:net'
import type { TLSSocket } from 'node:tls'
import { isLive, type Tokens, type VerifiedToken } from './tokens.ts'
import { authenticatedUser, type User } from './user.ts'

/** `wrong` is a credential that does not hold: it is refused, not taken for none. */
export type Authentication = { user: User } | 'none' | 'wrong'

// A connection's certificate does not change while it is open, but it may come to its end.
const byCertificate = new WeakMap<object, { user: User; expiresMs: number } | 'none'>()

// What a connection's last token was found to mean: clients send the same one with every request.
const byConnection = new WeakMap<object, VerifiedToken & { authorization: string }>()

/** Finds out who makes a request: a bearer token, or else the connection's client certificate. */
export function authenticate(
  request: { readonly headers: IncomingHttpHeaders; readonly socket: Socket },
  tokens: Tokens,
  nowMs: number,
): Authentication {
  const { authorization } = request.headers
  const { socket } = request
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

// Repeated attributes come as an array, whatever the types say.
function asArray(value: string | string[] | undefined): string[] {
  return value === undefined ? [] : Array.isArray(value) ? value : [value]
}
