import type { Socket } from 'node:net'

/**
 * Connections without an authenticated request so far. Their number is bounded: a new one beyond the limit closes the oldest. Clients
 * authenticate within milliseconds, so an attacker who opens thousands of connections closes mostly their own (invariant 10).
 */
export class UnauthenticatedConnections {
  readonly #max: number
  readonly #sockets = new Set<Socket>()

  constructor(max = 2_000) {
    this.#max = max
  }

  add(socket: Socket): void {
    const [oldest] = this.#sockets
    if (this.#sockets.size >= this.#max && oldest) {
      this.#sockets.delete(oldest)
      oldest.destroy()
    }
    this.#sockets.add(socket)
    socket.once('close', () => this.#sockets.delete(socket))
  }

  /** A request on this connection was authenticated. */
  delete(socket: Socket): void {
    this.#sockets.delete(socket)
  }

  get size(): number {
    return this.#sockets.size
  }
}
