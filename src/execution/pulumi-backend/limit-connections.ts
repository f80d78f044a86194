import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

/**
 * At most `max` connections (invariant 10). A further one closes the one that is idle for the longest time, so that connections without a request do
 * not exclude others; it is closed itself only if all others have a request in progress. Call it before the server listens.
 */
export function limitConnections(server: Server, max: number): void {
  /** Without a request in progress, in the order in which they became idle. */
  const idle = new Set<Socket>()
  const busy = new Set<Socket>()
  server.on('connection', (socket: Socket) => {
    if (idle.size + busy.size >= max) {
      const [oldest] = idle
      if (!oldest) {
        socket.destroy()
        return
      }
      // Before the event 'close', which comes later.
      idle.delete(oldest)
      oldest.destroy()
    }
    idle.add(socket)
    socket.once('close', () => {
      idle.delete(socket)
      busy.delete(socket)
    })
  })
  server.prependListener('request', ({ socket }: IncomingMessage, res: ServerResponse) => {
    if (!idle.delete(socket)) return
    busy.add(socket)
    res.once('close', () => {
      if (busy.delete(socket) && !socket.destroyed) idle.add(socket)
    })
  })
}
