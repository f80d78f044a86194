import type { Server, Socket } from 'node:net'
import { type ConnectionLimits, connectionLimits } from './connection-limits.ts'
import { networkOf } from './network-of.ts'

type Connection = { readonly socket: Socket; readonly network: string; user: string | undefined; unauthenticatedSinceMs: number }

/** The time that a client has for a handshake and a request although others wait: without it, under many new connections none would get this far. */
const graceMs = 250

/**
 * Bounds the open connections of all servers that it is given (invariant 10). It makes room for new ones, so that health checks are
 * answered while others keep thousands of connections open.
 *
 * - Without an authenticated request so far: a further one closes the oldest of the network that has the most, or is closed itself if
 *   that is its own network and the oldest is new. Clients authenticate within milliseconds, so an attacker closes mostly its own.
 * - Of users: {@link admit} refuses a connection of a user who has too many. When all users together have too many, the oldest of the
 *   user with the most is closed, so that no group of users can keep the others out.
 */
export class ConnectionLimiter {
  readonly #limits: ConnectionLimits
  readonly #unauthenticated = new Groups()
  readonly #users = new Groups()
  /** By the socket of the connection and by the TLS socket on top of it. */
  readonly #bySocket = new WeakMap<Socket, Connection>()
  /** Connections in the TLS handshake: node:tls does not expose the connection of a TLS socket, but both have the same peer. */
  readonly #byPeer = new Map<string, Connection>()
  readonly #nowMs: () => number

  constructor(limits: ConnectionLimits = connectionLimits().server, nowMs = () => performance.now()) {
    this.#limits = limits
    this.#nowMs = nowMs
  }

  /** Limits the connections of a server of node:net, node:http or node:https. Call it before the server listens. */
  limit(server: Server): void {
    const isTls = 'setSecureContext' in server
    server.on('connection', (socket: Socket) => this.#add(socket, isTls))
    server.on('secureConnection', (socket: Socket) => {
      const peer = peerOf(socket)
      const connection = this.#byPeer.get(peer)
      if (!connection) return
      this.#byPeer.delete(peer)
      this.#bySocket.set(socket, connection)
    })
  }

  /**
   * A request on this connection was authenticated. False if the connection cannot be counted as one of the user: respond with 503. It is then
   * still among those without an authenticated request, and a later request may be admitted.
   */
  admit(socket: Socket, user: string): boolean {
    const connection = this.#bySocket.get(socket)
    // Requests of this process have no connection.
    if (connection === undefined || connection.user !== undefined) return true
    const { perUser, authenticated } = this.#limits
    const own = this.#users.sizeOf(user)
    if (own >= perUser) return false
    if (this.#users.size >= authenticated) {
      const most = this.#users.largest()
      if (!most || most.size <= own + 1) return false
      this.#closeOldest(most)
    }
    this.#unauthenticated.delete(connection.network, connection)
    connection.user = user
    this.#users.add(user, connection)
    return true
  }

  /** The connection no longer counts as one of the user who was admitted, but as one without an authenticated request. */
  release(socket: Socket): void {
    const connection = this.#bySocket.get(socket)
    if (connection?.user === undefined || connection.socket.destroyed) return
    this.#users.delete(connection.user, connection)
    connection.user = undefined
    this.#addUnauthenticated(connection)
  }

  get size(): { unauthenticated: number; authenticated: number } {
    return { unauthenticated: this.#unauthenticated.size, authenticated: this.#users.size }
  }

  #add(socket: Socket, isTls: boolean): void {
    const connection: Connection = { socket, network: networkOf(socket.remoteAddress), user: undefined, unauthenticatedSinceMs: 0 }
    const peer = peerOf(socket)
    this.#bySocket.set(socket, connection)
    if (isTls) this.#byPeer.set(peer, connection)
    this.#addUnauthenticated(connection)
    socket.once('close', () => {
      if (this.#byPeer.get(peer) === connection) this.#byPeer.delete(peer)
      this.#remove(connection)
    })
  }

  #addUnauthenticated(connection: Connection): void {
    const { network, socket } = connection
    connection.unauthenticatedSinceMs = this.#nowMs()
    if (this.#unauthenticated.size >= this.#limits.unauthenticated) {
      const most = this.#unauthenticated.largest()
      const [oldest] = most ?? []
      if (oldest?.network === network && this.#nowMs() - oldest.unauthenticatedSinceMs < graceMs) {
        socket.destroy()
        return
      }
      if (most) this.#closeOldest(most)
    }
    this.#unauthenticated.add(network, connection)
  }

  #closeOldest(connections: ReadonlySet<Connection>): void {
    const [oldest] = connections
    if (!oldest) return
    // Before the event 'close', which comes later.
    this.#remove(oldest)
    oldest.socket.destroy()
  }

  #remove(connection: Connection): void {
    if (connection.user === undefined) this.#unauthenticated.delete(connection.network, connection)
    else this.#users.delete(connection.user, connection)
  }
}

/** Connections by a key, oldest first. */
class Groups {
  readonly #groups = new Map<string, Set<Connection>>()
  size = 0

  add(key: string, connection: Connection): void {
    const group = this.#groups.get(key)
    if (group) group.add(connection)
    else this.#groups.set(key, new Set([connection]))
    this.size++
  }

  delete(key: string, connection: Connection): void {
    const group = this.#groups.get(key)
    if (!group?.delete(connection)) return
    this.size--
    if (group.size === 0) this.#groups.delete(key)
  }

  sizeOf(key: string): number {
    return this.#groups.get(key)?.size ?? 0
  }

  largest(): ReadonlySet<Connection> | undefined {
    let largest: Set<Connection> | undefined
    for (const group of this.#groups.values()) if (!largest || group.size > largest.size) largest = group
    return largest
  }
}

const peerOf = ({ remoteAddress, remotePort }: Socket) => `${remoteAddress} ${remotePort}`
