import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { StatusError } from '../../kubernetes/object/index.ts'
import { Fairness } from '../../kubernetes/server/index.ts'
import {
  atMostEvery,
  ConnectionLimiter,
  type ConnectionLimits,
  connectionLimits,
  type HealthChecks,
  lingerOnClose,
  networkOf,
  respondToHealthCheck,
  sendContinue,
} from '../../kubernetes/util/index.ts'
import { type Address, isLoopback } from '../address.ts'
import type { Mount } from '../mount.ts'
import { listenError } from '../to-app-start-error.ts'
import { hasToken } from './status-access.ts'

export type HttpListenerOptions = {
  address: Address
  health: HealthChecks
  metrics(): Promise<{ contentType: string; text: string }>
  /** `/queue` as JSON; gets the path with its query. */
  queue(url: string): { status: number; body: object }
  /** Additional routes, which check permissions themselves. */
  mounts: readonly Mount[]
  /** Serves the paths below `/console/`, which authenticates users itself. Default: there is no console. */
  console?: ((path: string, request: IncomingMessage, response: ServerResponse) => Promise<void>) | undefined
  /** Reads metrics and queue. */
  statusToken: string
  /** Password or bearer token of an administrator, for `mounts` and everything else. Default: there is none. */
  adminToken?: string | undefined
  onError(error: unknown): void
  /** `authenticated` and `perUser` are connections whose request is being processed. Default: {@link connectionLimits}. */
  limits?: ConnectionLimits | undefined
}

const logIntervalMs = 10_000
const unreadResponseMs = 60_000

export type HttpListener = { address: Address; close(): Promise<void> }

/**
 * The plain HTTP listener: health, metrics, the queue, the console, and the state store for tools that cannot trust our certificate authority.
 * Unlike `startTlsListener` it knows its tokens, so no review can fail, and serves browsers: host names, whole requests within a minute.
 * Only health is served without a credential, on every address: other users of this machine can connect to a loopback address too.
 */
export async function startHttpListener(options: HttpListenerOptions): Promise<HttpListener> {
  const { address, onError } = options
  // An import of node:http evaluates all its exports, among them WebSocket, which loads undici and node:http2.
  const { createServer } = process.getBuiltinModule('node:http')
  const fairness = new Fairness()
  const limiter = new ConnectionLimiter(options.limits ?? connectionLimits().plain)
  const server = createServer((request, response) => {
    response.on('error', () => {})
    if (respondToHealthCheck(options.health, request, response)) return
    const { socket } = request
    // A connection is closed for a new one only while none of its requests is being processed.
    const client = clientOf(request, options)
    if (!limiter.admit(socket, client)) {
      response.setHeader('Retry-After', '1')
      return sendText(response, 503, 'too many requests are being processed: retry later')
    }
    response.once('close', () => limiter.release(socket))
    fairness
      .start(client, 'network', () => handleRequest(options, request, response))
      .catch(error => {
        if (error instanceof StatusError && error.code === 429 && !response.headersSent) {
          response.setHeader('Retry-After', '1')
          return sendText(response, 429, error.message)
        }
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
  sendContinue(server)
  lingerOnClose(server)
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

/** Whose connections are counted together. */
function clientOf(request: IncomingMessage, { adminToken, statusToken }: HttpListenerOptions): string {
  if (hasToken(request, [adminToken])) return 'administrator'
  return hasToken(request, [statusToken]) ? 'status reader' : `network ${networkOf(request.socket.remoteAddress)}`
}

async function handleRequest(options: HttpListenerOptions, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const [path = '/'] = (request.url ?? '/').split('?', 1)
  response.setHeader('X-Content-Type-Options', 'nosniff')
  const { statusToken, adminToken } = options
  const isAdmin = hasToken(request, [adminToken])
  for (const { prefix, handler } of options.mounts) {
    if (path.startsWith(prefix))
      return await handler(request, response, { user: isAdmin ? { name: 'oarlock:admin', groups: ['system:masters'] } : undefined })
  }
  // It checks the host itself.
  if (options.console && path.startsWith('/console/')) return await options.console(path, request, response)
  if (request.method !== 'GET' && request.method !== 'HEAD') {
    response.setHeader('Allow', 'GET, HEAD')
    return sendText(response, 405, 'method not allowed: use GET')
  }
  // Another host name means DNS rebinding: a foreign page made its name resolve to this address.
  if (!isOwnHost(request.headers.host, options.address)) return rejectHost(response)
  if (path === '/' && options.console) return void response.writeHead(302, { Location: '/console/' }).end()
  if (path !== '/metrics' && path !== '/queue') {
    const paths = ['/healthz', '/livez', '/readyz', '/startupz', '/metrics', '/queue', ...options.mounts.map(({ prefix }) => prefix)]
    return sendText(response, 404, `not found: use ${paths.join(', ')}`)
  }
  if (!isAdmin && !hasToken(request, [statusToken])) {
    // A browser asks for a password if the scheme is Basic, and shows the text otherwise.
    const realm = 'realm="oarlock: any user, the status token as password"'
    response.setHeader('WWW-Authenticate', isLoopback(options.address) ? 'Bearer realm="oarlock"' : `Basic ${realm}`)
    return sendText(response, 401, 'unauthorized: send the token of <data>/status-token as bearer token')
  }
  if (path === '/metrics') {
    const { contentType, text } = await options.metrics()
    response.writeHead(200, { 'Content-Type': contentType }).end(text)
    return
  }
  const { status, body } = options.queue(request.url ?? '/queue')
  response.writeHead(status, { 'Content-Type': 'application/json', 'Cache-Control': 'no-store' }).end(JSON.stringify(body))
}

const rejectHost = (response: ServerResponse) => sendText(response, 421, 'misdirected request: use localhost or a loopback address')

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
    server.once('error', error => reject(listenError('health', '--health-address', `${address.host}:${address.port}`, error)))
    server.listen(address.port, address.host, resolve)
  })
}
