import { openFileLimit } from './open-files.ts'

export type ConnectionLimits = {
  /** Connections without an authenticated request so far, from the first byte of the handshake; a further one closes the oldest. */
  unauthenticated: number
  /** Connections of all users. A further one closes one of the user with the most, or is refused with 503. */
  authenticated: number
  /** Connections of one user; a further one is refused with 503. */
  perUser: number
}

/** For 15,000 watches of one user and 30,000 in total, each with its own connection, and a margin. */
const most: ConnectionLimits = { unauthenticated: 2_000, authenticated: 33_000, perUser: 17_500 }
const mostOfPlainPort = 1_000

/**
 * Connections take at most half of the files that the process may open: it needs the others for itself, such as for logs and worker processes.
 * `server` is for API server or the HTTPS listener of another role, `plain` for the plain HTTP port (health, metrics).
 */
export function connectionLimits(openFiles = openFileLimit()): { server: ConnectionLimits; plain: ConnectionLimits } {
  const half = Math.max(8, Math.floor(openFiles / 2))
  const plain = Math.min(mostOfPlainPort, Math.floor(half / 8))
  return { server: divide(half - plain), plain: divide(plain) }
}

/** A quarter is for connections that have not authenticated yet, and no user gets more than half. */
function divide(connections: number): ConnectionLimits {
  const unauthenticated = Math.max(1, Math.min(most.unauthenticated, Math.floor(connections / 4)))
  return {
    unauthenticated,
    authenticated: Math.max(1, Math.min(most.authenticated, connections - unauthenticated)),
    perUser: Math.max(1, Math.min(most.perUser, Math.floor(connections / 2))),
  }
}
