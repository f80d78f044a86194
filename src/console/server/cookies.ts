import type { IncomingMessage } from 'node:http'

/** How a browser has reached the console: by a loopback name, or by another one, which is served with TLS only. */
export type ReachedBy = 'loopback' | 'tls'

/**
 * Browsers send cookies of one host to all its ports, so that the name has the port that the browser uses, which is another one behind a port-forward.
 * `__Host-`: no other host of the domain can set it.
 */
const nameOf = (name: string, { headers }: IncomingMessage, reachedBy: ReachedBy): string =>
  reachedBy === 'tls' ? `__Host-${name}` : `${name}-${/:(\d+)$/.exec(headers.host ?? '')?.[1] ?? 'default'}`

export function readCookie(request: IncomingMessage, name: string, reachedBy: ReachedBy): string | undefined {
  const start = `${nameOf(name, request, reachedBy)}=`
  const pairs = (request.headers.cookie ?? '').split(';').map(pair => pair.trim())
  return pairs.find(pair => pair.startsWith(start))?.slice(start.length)
}

/** Of the console, as the browser has it. */
export function originOf({ headers, socket }: IncomingMessage, reachedBy: ReachedBy): string {
  const isTls = reachedBy === 'tls' || 'encrypted' in socket
  return `${isTls ? 'https' : 'http'}://${headers.host}`
}

/** The value of `Set-Cookie`. An empty value with an age of 0 removes it. */
export function formatCookie(
  request: IncomingMessage,
  { name, value, sameSite, maxAgeSeconds }: { name: string; value: string; sameSite: 'Strict' | 'Lax'; maxAgeSeconds: number },
  reachedBy: ReachedBy,
): string {
  const secure = reachedBy === 'tls' ? '; Secure' : ''
  return `${nameOf(name, request, reachedBy)}=${value}; Path=/; HttpOnly; SameSite=${sameSite}; Max-Age=${maxAgeSeconds}${secure}`
}
