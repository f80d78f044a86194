import type { Server as HttpServer, IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'

export type LingerLimits = {
  /** How long the rest of a body is read. Default 10,000. */
  readonly maxMs: number
  /** How much of it. Default 32 MiB. */
  readonly maxBytes: number
}

const defaultLimits: LingerLimits = { maxMs: 10_000, maxBytes: 32 * 1024 * 1024 }
const checkEveryMs = 200

/**
 * Makes a server read the rest of a body after a response that ends the connection (`Connection: close`) and was sent before the body had arrived, such as
 * 401 or 413. node:http closes the socket at that moment: the kernel answers what the client still sends with RST, and the client loses the response. nginx
 * does the same (lingering_close). Without `Connection: close`, node:http itself reads the rest.
 */
export function lingerOnClose(server: HttpServer, limits: LingerLimits = defaultLimits): void {
  server.prependListener('request', (request: IncomingMessage) => {
    const { headers, socket } = request
    if (headers['content-length'] === undefined && headers['transfer-encoding'] === undefined) return
    const { destroySoon } = Object.getPrototypeOf(socket) as Socket
    socket.destroySoon = () => {
      if (request.complete || socket.destroyed) destroySoon.call(socket)
      else linger(socket, request, limits)
    }
  })
}

/** The response and the end of this side are sent; node:http discards what arrives. */
function linger(socket: Socket, request: IncomingMessage, { maxMs, maxBytes }: LingerLimits): void {
  const untilMs = performance.now() + maxMs
  const untilBytes = socket.bytesRead + maxBytes
  const timer = setInterval(() => {
    if (request.complete || performance.now() >= untilMs || socket.bytesRead >= untilBytes) socket.destroy()
  }, checkEveryMs)
  request.once('end', () => socket.destroySoon())
  socket.once('close', () => clearInterval(timer))
  request.resume()
  socket.end()
}
