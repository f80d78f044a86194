import type { IncomingMessage, ServerResponse } from 'node:http'
import type { TLSSocket } from 'node:tls'
import { StatusError } from '../../object/index.ts'
import { readRoute } from '../../object/route.ts'
import { networkOf } from '../../util/index.ts'
import { authenticate, type User } from '../auth/index.ts'
import { type Reply, sendError } from '../wire/index.ts'
import { beginAudit } from './begin-audit.ts'
import { checkImpersonation } from './check-impersonation.ts'
import type { HandlerOptions } from './handler-options.ts'
import type { Handler, HttpRequest } from './handler-types.ts'
import { gatewayWatchOf, kubeletPath, progressPath, raiseToSeen, rightsPath, serveKubelet, serveProgress } from './partition-protocol.ts'
import { serveRights } from './partition-rights.ts'
import { serveAnonymousPath, servePath } from './path-requests.ts'
import { serveResource } from './resource-requests.ts'
import { withRequestMetrics } from './with-request-metrics.ts'

const maxUrlLength = 16 * 1024

/** Returns the function that serves every request of the TLS listener. It never throws, and every request gets a response. */
export function makeHandler(options: HandlerOptions): Handler {
  // One for all requests: V8 allocates a function literal that is assigned to a property in the old generation, where it keeps its request alive.
  const reachedVersion = () => options.services.store.revision
  return (request, response) => {
    const fail = (error: unknown) => sendError(response, error, internal => options.onInternalError(internal, request))
    // A client that disconnects is not a server error, and an 'error' event without a listener would end the process.
    response.on('error', () => {})
    try {
      const done = dispatch(options, request, response, reachedVersion)
      if (done) done.catch(fail)
    } catch (error) {
      fail(error)
    }
  }
}

function dispatch(options: HandlerOptions, request: HttpRequest, response: Reply, reachedVersion: () => number): Promise<void> | undefined {
  if (!options.frontProxy?.isProxy(request.socket as TLSSocket, options.services.store.nowMs)) {
    const token = unknownToken(options, request)
    if (token === undefined) return serve(options, request, response, false)
    return options.reviewedTokens?.review(token, request.socket.remoteAddress).then(() => serve(options, request, response, false))
  }
  response.reachedVersion = reachedVersion
  const raised = raiseToSeen(options.services, request)
  return raised ? raised.then(() => serve(options, request, response, true)) : serve(options, request, response, true)
}

/** The bearer token of a request, if only another server may know it. */
function unknownToken(options: HandlerOptions, request: HttpRequest): string | undefined {
  if (!options.reviewedTokens || authenticate(request, options, options.services.store.nowMs) !== 'wrong') return undefined
  return /^bearer +(.+)$/i.exec(request.headers.authorization ?? '')?.[1]?.trim()
}

function serve(options: HandlerOptions, request: HttpRequest, response: Reply, isProxied: boolean): Promise<void> | undefined {
  const { mounts, services } = options
  const url = request.url ?? '/'
  if (url.length > maxUrlLength) {
    throw new StatusError('RequestURITooLong', `the URL must be at most ${maxUrlLength} characters, got ${url.length}`, { code: 414 })
  }
  const queryStart = url.indexOf('?')
  const path = queryStart < 0 ? url : url.slice(0, queryStart)

  const authentication = authenticate(request, options, services.store.nowMs)
  const isAdmitted = typeof authentication === 'string' || options.connections.admit(request.socket, authentication.user.name)
  for (const mount of mounts) {
    if (!path.startsWith(mount.prefix)) continue
    if (!isAdmitted) throw tooManyConnections()
    const user = typeof authentication === 'string' ? undefined : authentication.user
    const audit = (user: User) => {
      if (options.auditor) beginAudit(options.auditor, { request, path, query: undefined, user, route: { type: 'path', path } }, response)
    }
    if (user) audit(user)
    const reauthenticate = async () => {
      const again = authenticate(request, options, services.store.nowMs)
      return typeof again === 'string' ? undefined : again.user
    }
    const serve = async () => {
      // The listener passes objects of node:http, or of node:http2's compatibility API, to these paths.
      if (!response.destroyed) await mount.handler(request as IncomingMessage, response as ServerResponse, { user, reauthenticate, audit })
    }
    return user
      ? options.fairness.start(user.name, 'user', serve)
      : options.fairness.start(networkOf(request.socket.remoteAddress), 'network', serve)
  }
  const route = readRoute(path)
  const query = queryStart < 0 ? undefined : new URLSearchParams(url.slice(queryStart + 1))
  if (isProxied && path === progressPath) return serveProgress(options.services, query, response)
  if (isProxied && path === rightsPath) return serveRights(options.authorize, request, response)
  if (isProxied && path === kubeletPath) {
    serveKubelet(options.services, query, response)
    return undefined
  }
  if (route.type === 'path' && serveAnonymousPath(options, route.path, query, request, response)) return undefined
  if (typeof authentication === 'string') throw new StatusError('Unauthorized', 'Unauthorized')
  if (!isAdmitted) throw tooManyConnections()
  checkImpersonation(request)
  const { user } = authentication
  if (options.auditor) beginAudit(options.auditor, { request, path, query, user, route }, response)
  if (route.type === 'path') return servePath(options, { path: route.path, query, user, request }, response)
  const resourceRequest = { route, query, user, request, isProxied, gatewayWatch: isProxied ? gatewayWatchOf(request) : undefined }
  const serveIt = () => serveResource(options, resourceRequest, response)
  return withRequestMetrics(options.requestMetrics, services.registry, resourceRequest, response, serveIt)
}

const tooManyConnections = () =>
  new StatusError('ServiceUnavailable', 'this user has too many connections: close some, or retry later', {
    details: { retryAfterSeconds: 1 },
  })
