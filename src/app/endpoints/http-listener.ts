import { hash, timingSafeEqual } from 'node:crypto'
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import {
  atMostEvery,
  ConnectionLimiter,
  type ConnectionLimits,
  connectionLimits,
  type HealthChecks,
  networkOf,
  respondToHealthCheck,
} from '../../kubernetes/util/index.ts'
import { type Address, isLoopback } from '../address.ts'
import type { Mount } from '../mount.ts'
import { listenError } from '../to-app-start-error.ts'

export type HttpListenerOptions = {
  address: Address
  health: HealthChecks
  metrics(): Promise<{ contentType: string; text: string }>
  page(): string
  /** `/queue` as JSON; gets the path with its query. */
  queue(url: string): { status: number; body: object }
  /** Additional routes, which check permissions themselves. */
  mounts: readonly Mount[]
  /** Password or bearer token of an administrator. Undefined: page and queue are served on loopback addresses only, metrics to everyone. */
  adminToken: string | undefined
  onError(error: unknown): void
  /** `authenticated` and `perUser` are connections whose request is being processed. Default: {@link connectionLimits}. */
  limits?: ConnectionLimits | undefined
}

const logIntervalMs = 10_000
const unreadResponseMs = 60_000

export type HttpListener = { address: Address; close(): Promise<void> }

/**
 * The plain HTTP listener: health, metrics, the status page, and the state store for tools that cannot trust our certificate authority.
 * On loopback, page, metrics and queue need no password, as they show no secrets. On other addresses they require the admin token.
 */
export async function startHttpListener(options: HttpListenerOptions): Promise<HttpListener> {
  const { address, onError } = options
  const needsPassword = !isLoopback(address)
  // An import of node:http evaluates all its exports, among them WebSocket, which loads undici and node:http2.
  const { createServer } = process.getBuiltinModule('node:http')
  const limiter = new ConnectionLimiter(options.limits ?? connectionLimits().plain)
  const server = createServer((request, response) => {
    response.on('error', () => {})
    if (respondToHealthCheck(options.health, request, response)) return
    const { socket } = request
    // A connection is closed for a new one only while none of its requests is being processed.
    const client = hasAdminToken(request, options.adminToken) ? 'administrator' : `network ${networkOf(socket.remoteAddress)}`
    if (!limiter.admit(socket, client)) {
      response.setHeader('Retry-After', '1')
      return sendText(response, 503, 'too many requests are being processed: retry later')
    }
    response.once('close', () => limiter.release(socket))
    handleRequest(options, needsPassword, request, response)
      .catch(error => {
        onError(error)
        if (!response.headersSent) sendText(response, 500, 'internal error')
        else response.destroy()
      })
      .finally(() => {
        // Everything was written: a client that does not read it must not keep its place.
        const timer = setTimeout(() => response.destroy(), unreadResponseMs).unref()
        response.once('close', () => clearTimeout(timer))
      })
  })
  limiter.limit(server)
  server.headersTimeout = 30_000
  server.requestTimeout = 60_000
  server.on('clientError', (_error, socket) => socket.destroy())
  await listen(server, address)
  // Without a listener, an error of accept, such as too many open files, would end the process.
  server.on('error', atMostEvery(logIntervalMs, onError))
  const { port } = server.address() as AddressInfo
  return {
    address: { host: address.host, port },
    close: () =>
      new Promise(resolve => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}

async function handleRequest(
  options: HttpListenerOptions,
  needsPassword: boolean,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const path = (request.url ?? '/').split('?')[0] ?? '/'
  response.setHeader('X-Content-Type-Options', 'nosniff')
  const isAdmin = hasAdminToken(request, options.adminToken)
  for (const { prefix, handler } of options.mounts) {
    if (path.startsWith(prefix))
      return await handler(request, response, { user: isAdmin ? { name: 'oarlock:admin', groups: ['system:masters'] } : undefined })
  }
  if (request.method !== 'GET' && request.method !== 'HEAD') {
    response.setHeader('Allow', 'GET, HEAD')
    return sendText(response, 405, 'method not allowed: use GET')
  }
  // Another host name means DNS rebinding: a foreign page made its name resolve to this address.
  if (!isOwnHost(request.headers.host, options.address))
    return sendText(response, 421, 'misdirected request: use localhost or a loopback address')
  if (path !== '/' && path !== '/metrics' && path !== '/queue')
    return sendText(response, 404, 'not found: use /, /healthz, /livez, /readyz, /startupz, /metrics, /queue, /state/ or /logs/')
  if (needsPassword && options.adminToken === undefined && path !== '/metrics')
    return sendText(response, 403, 'forbidden: this process serves the status page and the queue on a loopback address only')
  if (needsPassword && options.adminToken !== undefined && !isAdmin) {
    response.setHeader('WWW-Authenticate', 'Basic realm="oarlock: any user, the admin token as password"')
    return sendText(response, 401, 'unauthorized: the admin token of <data>/kubeconfig is required')
  }
  if (path === '/metrics') {
    const { contentType, text } = await options.metrics()
    response.writeHead(200, { 'Content-Type': contentType }).end(text)
    return
  }
  if (path === '/queue') {
    const { status, body } = options.queue(request.url ?? '/queue')
    response.writeHead(status, { 'Content-Type': 'application/json', 'Cache-Control': 'no-store' }).end(JSON.stringify(body))
    return
  }
  response
    .writeHead(200, {
      'Content-Type': 'text/html; charset=utf-8',
      'Content-Security-Policy':
        "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
      'Referrer-Policy': 'no-referrer',
      'Cache-Control': 'no-store',
    })
    .end(options.page())
}

function hasAdminToken(request: IncomingMessage, adminToken: string | undefined): boolean {
  if (adminToken === undefined) return false
  const [scheme = '', value = ''] = (request.headers.authorization ?? '').split(' ', 2)
  const kind = scheme.toLowerCase()
  const given =
    kind === 'bearer'
      ? value
      : kind === 'basic'
        ? Buffer.from(value, 'base64')
            .toString()
            .replace(/^[^:]*:/, '')
        : ''
  const digest = (text: string) => hash('sha256', text, 'buffer')
  return given !== '' && timingSafeEqual(digest(given), digest(adminToken))
}

function isOwnHost(header: string | undefined, address: Address): boolean {
  if (!isLoopback(address)) return true
  const host = (header ?? '').replace(/:\d+$/, '').replace(/^\[|\]$/g, '')
  return host === '' || isLoopback({ host })
}

function sendText(response: ServerResponse, status: number, text: string): void {
  response.writeHead(status, { 'Content-Type': 'text/plain; charset=utf-8' }).end(`${text}\n`)
}

function listen(server: Server, address: Address): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', error => reject(listenError('status page', '--health-address', `${address.host}:${address.port}`, error)))
    server.listen(address.port, address.host, resolve)
  })
}
