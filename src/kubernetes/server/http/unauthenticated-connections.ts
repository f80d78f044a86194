import type { Socket } from 'node:net'

/**
 * Connections of which nobody has said yet who they are. There may be so many: with the next one, the oldest goes. A client says it
 * within milliseconds, and a stranger who opens thousands of connections closes their own (invariant 10).
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

  /** A request came on it from somebody who is known. */
  delete(socket: Socket): void {
    this.#sockets.delete(socket)
  }

  get size(): number {
    return this.#sockets.size
  }
}
