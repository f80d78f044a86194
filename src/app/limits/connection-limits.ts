import { readFileSync } from 'node:fs'
import type { Server } from 'node:https'
import type { Socket } from 'node:net'
import { UnauthenticatedConnections } from '../../kubernetes/server/index.ts'

export type ConnectionLimits = {
  /** Further ones are closed immediately. */
  connections: number
  /** Connections without an authenticated request so far, from the first byte of the handshake; a further one closes the oldest. */
  unauthenticated: number
}

/** Those of the API server's port (docs/security.md), and fewer if the process may open fewer files: it needs some for itself. */
export function connectionLimits(openFiles = openFileLimit()): ConnectionLimits {
  const connections = Math.min(35_000, Math.max(1, Math.floor(openFiles / 2)))
  return { connections, unauthenticated: Math.min(2_000, Math.ceil(connections / 2)) }
}

/** Known on Linux; elsewhere Node raises the limit at its start and it is assumed to be sufficient. */
function openFileLimit(): number {
  try {
    const [, text] = /^Max open files\s+(\d+)/m.exec(readFileSync('/proc/self/limits', 'latin1')) ?? []
    return text === undefined ? Number.POSITIVE_INFINITY : Number(text)
  } catch {
    return Number.POSITIVE_INFINITY
  }
}

/** Limits the connections of a TLS server. The returned function removes the limit of unauthenticated ones from that of a request. */
export function limitConnections(server: Server, { connections, unauthenticated }: ConnectionLimits): (socket: Socket) => void {
  server.maxConnections = connections
  const open = new UnauthenticatedConnections(unauthenticated)
  /** A request has the TLS socket, whose TCP socket node:tls does not expose: both have the same peer. */
  const byPeer = new Map<string, Socket>()
  server.on('connection', socket => {
    const peer = peerOf(socket)
    byPeer.set(peer, socket)
    open.add(socket)
    socket.once('close', () => {
      if (byPeer.get(peer) === socket) byPeer.delete(peer)
    })
  })
  return socket => {
    const connection = byPeer.get(peerOf(socket))
    if (connection) open.delete(connection)
  }
}

const peerOf = ({ remoteAddress, remotePort }: Socket) => `${remoteAddress} ${remotePort}`
