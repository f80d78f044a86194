import type { IncomingMessage, ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Duplex } from 'node:stream'
import type { ClientRequest, ClientResponse } from '../../gateway/index.ts'
import { makeListener } from '../../kubernetes/server/http/listener.ts'
import { atMostEvery, type ConnectionLimiter, respondToHealthCheck } from '../../kubernetes/util/index.ts'
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
  /** Never throws. */
  serve(request: ClientRequest, response: ClientResponse): Promise<void>
  /** Serves `/metrics`. */
  metrics(request: IncomingMessage, response: ServerResponse): Promise<void>
  /** Whether an upgrade of the connection is considered; all other requests are served as if they had not asked for one. */
  mayUpgrade(request: IncomingMessage): boolean
  /** Serves a request to upgrade its connection. Never throws. */
  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void
  onError(error: unknown): void
}

const logIntervalMs = 10_000
/** Requests in progress may end within this time; watches are ended. */
const closeGraceMs = 2_000
/** Served by objects of node:http. */
const plainPaths = ['/livez', '/healthz', '/readyz', '/startupz', '/metrics']

/**
 * The HTTPS listener of a gateway, with the protocols of the API server: HTTP/2, and HTTP/1.1 in a form that takes little work. Clients authenticate with a
 * certificate or a token, which `serve` does.
 */
export async function startGatewayListener(
  options: GatewayListenerOptions,
): Promise<{ readonly address: Address; close(): Promise<void> }> {
  const { listen, serving, clientCa, limiter: connections } = options
  const onError = atMostEvery(logIntervalMs, options.onError)
  const listener = makeListener({
    ...{ tls: { ...serving, ca: clientCa }, connections, nodeHttpPrefixes: plainPaths },
    handler(request, response) {
      response.on('error', () => {})
      if (isPlain(request.url)) servePlain(options, request as IncomingMessage, response as unknown as ServerResponse)
      else void options.serve(request, response as unknown as ClientResponse)
    },
    upgrades: { accept: options.mayUpgrade, serve: options.upgrade },
    onTlsError: () => {},
    onServerError: onError,
  })
  const { server } = listener
  await new Promise<void>((resolve, reject) => {
    const fail = (error: Error) => reject(listenError('gateway', '--listen', `${listen.host}:${listen.port}`, error))
    server.once('error', fail)
    server.listen(listen.port, listen.host, () => {
      server.off('error', fail)
      resolve()
    })
  })
  const { port } = server.address() as AddressInfo
  return { address: { host: listen.host, port }, close: () => listener.stop(closeGraceMs, () => {}) }
}

const isPlain = (url = '') => plainPaths.some(path => url.startsWith(path))

function servePlain(options: GatewayListenerOptions, request: IncomingMessage, response: ServerResponse): void {
  if (respondToHealthCheck({ livez: () => [], readyz: options.notReady }, request, response)) return
  if ((request.url ?? '').split('?', 1)[0] !== '/metrics') return void options.serve(request, response)
  options.metrics(request, response).catch(error => {
    options.onError(error)
    response.destroy()
  })
}
