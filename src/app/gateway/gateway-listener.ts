import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Duplex } from 'node:stream'
import { atMostEvery, type ConnectionLimiter, lingerOnClose, respondToHealthCheck, sendContinue } from '../../kubernetes/util/index.ts'
import type { Address } from '../address.ts'
import type { Pair } from '../partition/configuration.ts'
import { listenError } from '../to-app-start-error.ts'

export type GatewayListenerOptions = {
  readonly listen: Address
  readonly serving: Pair
  /** PEM of the authority of client certificates. */
  readonly clientCa: string
  /** The reasons why the gateway is not ready, served as /readyz without authentication. */
  notReady(): readonly string[]
  /** Counts the connections; the caller admits the user of each to it. */
  readonly limiter: ConnectionLimiter
  serve(request: IncomingMessage, response: ServerResponse): Promise<void>
  /** Whether an upgrade of the connection is considered; all other requests are served as if they had not asked for one. */
  mayUpgrade(request: IncomingMessage): boolean
  /** Serves a request to upgrade its connection. Never throws. */
  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void
  onError(error: unknown): void
}

const logIntervalMs = 10_000
const handshakeTimeoutMs = 10_000
const headersTimeoutMs = 30_000
/** Bodies are small; a client that sends one byte at a time must not keep its connection. */
const requestTimeoutMs = 60_000
/** Requests in progress may end within this time; watches are ended. */
const closeGraceMs = 2_000

/** The HTTPS listener of a gateway. Clients authenticate with a certificate or a token, which `serve` does. */
export async function startGatewayListener(
  options: GatewayListenerOptions,
): Promise<{ readonly address: Address; close(): Promise<void> }> {
  const { listen, serving, clientCa, limiter, onError } = options
  const { createServer } = process.getBuiltinModule('node:https')
  const tls = { cert: serving.certificate, key: serving.key, ca: clientCa, minVersion: 'TLSv1.2' } as const
  // A client without a certificate may have a token: what it sent is checked for each request.
  const clientCertificates = { requestCert: true, rejectUnauthorized: false }
  const { mayUpgrade: shouldUpgradeCallback } = options
  const server = createServer(
    { ...tls, ...clientCertificates, handshakeTimeout: handshakeTimeoutMs, shouldUpgradeCallback },
    (request, response) => {
      response.on('error', () => {})
      if (respondToHealthCheck({ livez: () => [], readyz: options.notReady }, request, response)) return
      options.serve(request, response).catch(error => {
        onError(error)
        response.destroy()
      })
    },
  )
  limiter.limit(server)
  server.headersTimeout = headersTimeoutMs
  server.requestTimeout = requestTimeoutMs
  sendContinue(server)
  lingerOnClose(server)
  server.on('upgrade', (request, socket, head) => options.upgrade(request, socket, head))
  server.on('tlsClientError', (_error, socket) => socket.destroy())
  server.on('clientError', (_error, socket) => socket.destroy())
  await new Promise<void>((resolve, reject) => {
    server.once('error', error => reject(listenError('gateway', '--listen', `${listen.host}:${listen.port}`, error)))
    server.listen(listen.port, listen.host, resolve)
  })
  // Such as EMFILE while connections are accepted: an 'error' event without a listener would end the process.
  server.on('error', atMostEvery(logIntervalMs, onError))
  const { port } = server.address() as AddressInfo
  return { address: { host: listen.host, port }, close: () => closeServer(server) }
}

function closeServer(server: Server): Promise<void> {
  return new Promise(resolve => {
    const timer = setTimeout(() => server.closeAllConnections(), closeGraceMs)
    server.close(() => {
      clearTimeout(timer)
      resolve()
    })
    server.closeIdleConnections()
  })
}
