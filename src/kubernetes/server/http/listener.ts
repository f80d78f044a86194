import type { IncomingMessage, ServerResponse } from 'node:http'
import { createServer, type Server } from 'node:https'
import type { Socket } from 'node:net'
import type { Handler } from './handler-types.ts'
import { Http1Connection } from './http1-connection.ts'
import { type Http2, openHttp2 } from './http2.ts'
import { SendBufferLimiter, type SendBufferLimits } from './send-buffer-limiter.ts'
import { UnauthenticatedConnections } from './unauthenticated-connections.ts'

export type ListenerOptions = {
  /** PEM. */
  tls: { certificate: string; key: string; ca: string }
  handler: Handler
  /** Prefixes of paths whose handlers need node:http's objects. */
  nodeHttpPrefixes: readonly string[]
  onTlsError: (error: Error) => void
  /** Gets every new connection; the handler removes those that authenticate. Default: a new one. */
  unauthenticated?: UnauthenticatedConnections
  /** Further connections are not accepted. Default 35,000: the limit of watches and a margin. */
  maxConnections?: number
  sendBufferLimits?: Partial<SendBufferLimits>
}

/** The TLS listener of the API server. */
export type Listener = {
  readonly server: Server
  /** Stops accepting and finishes requests in progress; after `graceMs`, closes the remaining connections. `onClosing` is called first. */
  stop(graceMs: number, onClosing: () => void): Promise<void>
}

const keepAliveTimeoutMs = 90_000
const headersTimeoutMs = 30_000
const requestTimeoutMs = 60_000
const maxHeaderBytes = 32 * 1024
const sweepEveryMs = 5_000
const sendBufferSweepMs = 1_000
const handshakeTimeoutMs = 10_000
const defaultMaxConnections = 35_000

/**
 * One port with three protocol implementations: HTTP/2 when the client negotiates it in the handshake, our own HTTP/1.1 for simple
 * requests, and node:http for all others. All use the same handler.
 */
export function makeListener(options: ListenerOptions): Listener {
  const {
    tls,
    handler,
    nodeHttpPrefixes,
    onTlsError,
    unauthenticated = new UnauthenticatedConnections(),
    maxConnections = defaultMaxConnections,
  } = options
  const sendBuffers = new SendBufferLimiter(options.sendBufferLimits)
  const server = createServer(
    {
      cert: tls.certificate,
      key: tls.key,
      ca: tls.ca,
      requestCert: true,
      rejectUnauthorized: false,
      minVersion: 'TLSv1.2',
      ALPNProtocols: ['h2', 'http/1.1'],
      noDelay: true,
      keepAlive: true,
      keepAliveTimeout: keepAliveTimeoutMs,
      headersTimeout: headersTimeoutMs,
      requestTimeout: requestTimeoutMs,
      handshakeTimeout: handshakeTimeoutMs,
      maxHeaderSize: maxHeaderBytes,
    },
    (request: IncomingMessage, response: ServerResponse) => handler(request, response),
  )
  server.maxConnections = maxConnections
  const usesNodeHttp = (url: string) => nodeHttpPrefixes.some(prefix => url.startsWith(prefix))
  const connections = new Set<Http1Connection>()
  let http2: Promise<Http2> | undefined
  let isStopping = false

  // node:http's listener, which takes over a connection.
  const [delegateToNodeHttp] = server.listeners('secureConnection') as ((this: Server, socket: Socket) => void)[]
  server.removeAllListeners('secureConnection')
  server.on('secureConnection', socket => {
    unauthenticated.add(socket)
    if (socket.alpnProtocol === 'h2') {
      // Until node:http2 is loaded and adds its own listener.
      socket.on('error', () => {})
      http2 ??= openHttp2({
        handler,
        usesNodeHttp,
        onCompatRequest: (request, response) => handler(request as IncomingMessage, response as ServerResponse),
        maxHeaderBytes,
        requestTimeoutMs,
        idleTimeoutMs: keepAliveTimeoutMs,
        sendBuffers,
      })
      void http2.then(({ accept }) => (isStopping || socket.destroyed ? socket.destroy() : accept(socket)))
      return
    }
    const connection = new Http1Connection(socket, {
      handler,
      usesNodeHttp,
      onDelegate: (taken, rest) => {
        sendBuffers.add(taken)
        taken.once('close', () => sendBuffers.delete(taken))
        taken.unshift(rest)
        delegateToNodeHttp?.call(server, taken)
        taken.resume()
      },
      onClose: closed => {
        connections.delete(closed)
        sendBuffers.delete(closed)
      },
    })
    connections.add(connection)
    sendBuffers.add(connection)
  })
  server.on('clientError', (_error, socket) => {
    if (socket.writable) socket.end('HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Length: 0\r\n\r\n')
    else socket.destroy()
  })
  server.on('tlsClientError', onTlsError)
  const sweep = setInterval(() => {
    for (const connection of connections) connection.sweep(keepAliveTimeoutMs / sweepEveryMs, headersTimeoutMs / sweepEveryMs)
  }, sweepEveryMs)
  sweep.unref()
  const sendBufferSweep = setInterval(() => sendBuffers.sweep(), sendBufferSweepMs)
  sendBufferSweep.unref()

  return {
    server,
    async stop(graceMs, onClosing) {
      isStopping = true
      const closed = new Promise<void>(resolve => server.close(() => resolve()))
      onClosing()
      clearInterval(sweep)
      clearInterval(sendBufferSweep)
      for (const connection of connections) connection.stop()
      const opened = await http2
      opened?.stop()
      server.closeIdleConnections()
      const cut = setTimeout(() => {
        server.closeAllConnections()
        for (const connection of connections) connection.destroy()
        opened?.destroy()
      }, graceMs)
      // Connections of node:http become idle one by one as their responses end.
      const idle = setInterval(() => server.closeIdleConnections(), 20)
      await closed
      clearTimeout(cut)
      clearInterval(idle)
    },
  }
}
