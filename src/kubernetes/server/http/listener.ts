import type { Server as HttpServer, IncomingMessage, ServerResponse } from 'node:http'
import { createServer, type Server } from 'node:https'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { atMostEvery, ConnectionLimiter, lingerOnClose, sendContinue } from '../../util/index.ts'
import { answerClientError } from './client-error.ts'
import type { Handler } from './handler-types.ts'
import { Http1Connection } from './http1-connection.ts'
import { type Http2, openHttp2 } from './http2.ts'
import { SendBufferLimiter, type SendBufferLimits } from './send-buffer-limiter.ts'

export type ListenerOptions = {
  /** PEM; `ca`: whose client certificates are accepted. */
  tls: { certificate: string; key: string; ca: string | string[] }
  handler: Handler
  /** Requests to upgrade a connection: which are considered, and what serves them. Default: none, they are served without an upgrade. */
  upgrades?: { accept: (request: IncomingMessage) => boolean; serve: (request: IncomingMessage, socket: Socket, head: Buffer) => void }
  /** Prefixes of paths whose handlers need node:http's objects. */
  nodeHttpPrefixes: readonly string[]
  onTlsError: (error: Error) => void
  /** An error of a server that listens, such as too many open files; once per interval. */
  onServerError: (error: Error) => void
  /** Gets every new connection; the handler admits those that authenticate. Default: a new one. */
  connections?: ConnectionLimiter
  sendBufferLimits?: Partial<SendBufferLimits>
}

/** The listeners of the API server. */
export type Listener = {
  readonly server: Server
  /** Without TLS and HTTP/2, for a Unix socket. */
  readonly plainServer: HttpServer
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
const logIntervalMs = 10_000

/**
 * One port with three protocol implementations: HTTP/2 when the client negotiates it in the handshake, our own HTTP/1.1 for simple
 * requests, and node:http for all others. All use the same handler. A second server without TLS has both implementations of HTTP/1.1
 * and the same limits.
 */
export function makeListener(options: ListenerOptions): Listener {
  const { tls, handler, upgrades, nodeHttpPrefixes, onTlsError, connections: limiter = new ConnectionLimiter() } = options
  const sendBuffers = new SendBufferLimiter(options.sendBufferLimits)
  const onRequest = (request: IncomingMessage, response: ServerResponse) => handler(request, response)
  const httpOptions = {
    noDelay: true,
    keepAlive: true,
    keepAliveTimeout: keepAliveTimeoutMs,
    headersTimeout: headersTimeoutMs,
    requestTimeout: requestTimeoutMs,
    maxHeaderSize: maxHeaderBytes,
    shouldUpgradeCallback: (request: IncomingMessage) => upgrades?.accept(request) ?? false,
  }
  const server = createServer(
    {
      ...httpOptions,
      cert: tls.certificate,
      key: tls.key,
      ca: tls.ca,
      requestCert: true,
      rejectUnauthorized: false,
      minVersion: 'TLSv1.2',
      ALPNProtocols: ['h2', 'http/1.1'],
      handshakeTimeout: handshakeTimeoutMs,
    },
    onRequest,
  )
  const plainServer = process.getBuiltinModule('node:http').createServer(httpOptions, onRequest)
  const servers = [server, plainServer]
  const usesNodeHttp = (url: string) => nodeHttpPrefixes.some(prefix => url.startsWith(prefix))
  const connections = new Set<Http1Connection>()
  /** Connections that were upgraded: no server counts them. */
  const upgraded = new Set<Duplex>()
  let http2: Promise<Http2> | undefined
  let isStopping = false

  const delegateTls = takeConnections(server, 'secureConnection')
  const delegatePlain = takeConnections(plainServer, 'connection')
  // Without a listener, such an error would end the process.
  const onServerError = atMostEvery(logIntervalMs, options.onServerError)
  for (const each of servers) {
    limiter.limit(each)
    sendContinue(each)
    lingerOnClose(each)
    each.on('upgrade', (request, socket, head) => {
      upgraded.add(socket)
      socket.once('close', () => upgraded.delete(socket))
      upgrades?.serve(request, socket as Socket, head)
    })
    each.once('listening', () => each.on('error', onServerError))
  }
  server.on('secureConnection', socket => {
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
    accept(socket, delegateTls)
  })
  plainServer.on('connection', socket => accept(socket, delegatePlain))
  function accept(socket: Socket, delegateToNodeHttp: (socket: Socket) => void): void {
    const connection = new Http1Connection(socket, {
      handler,
      usesNodeHttp,
      onDelegate: (taken, rest) => {
        sendBuffers.add(taken)
        taken.once('close', () => sendBuffers.delete(taken))
        taken.unshift(rest)
        delegateToNodeHttp(taken)
        taken.resume()
      },
      onClose: closed => {
        connections.delete(closed)
        sendBuffers.delete(closed)
      },
    })
    connections.add(connection)
    sendBuffers.add(connection)
  }
  for (const each of servers) each.on('clientError', answerClientError)
  server.on('tlsClientError', onTlsError)
  const sweep = setInterval(() => {
    for (const connection of connections) connection.sweep(keepAliveTimeoutMs / sweepEveryMs, headersTimeoutMs / sweepEveryMs)
  }, sweepEveryMs)
  sweep.unref()
  const sendBufferSweep = setInterval(() => sendBuffers.sweep(), sendBufferSweepMs)
  sendBufferSweep.unref()
  const closeIdle = () => {
    for (const each of servers) each.closeIdleConnections()
  }

  return {
    server,
    plainServer,
    async stop(graceMs, onClosing) {
      isStopping = true
      // The callback follows also where the server did not listen.
      const closed = Promise.all(servers.map(each => new Promise<void>(resolve => each.close(() => resolve()))))
      onClosing()
      clearInterval(sweep)
      clearInterval(sendBufferSweep)
      for (const connection of connections) connection.stop()
      for (const socket of upgraded) socket.destroy()
      const opened = await http2
      opened?.stop()
      closeIdle()
      const cut = setTimeout(() => {
        for (const each of servers) each.closeAllConnections()
        for (const connection of connections) connection.destroy()
        opened?.destroy()
      }, graceMs)
      // Connections of node:http become idle one by one as their responses end.
      const idle = setInterval(closeIdle, 20)
      await closed
      clearTimeout(cut)
      clearInterval(idle)
    },
  }
}

/** Replaces the listener that node:http adds for new connections; the returned function passes one on to it. */
function takeConnections(server: HttpServer, event: 'connection' | 'secureConnection'): (socket: Socket) => void {
  const [listener] = server.listeners(event)
  server.removeAllListeners(event)
  return socket => listener?.call(server, socket)
}
