import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { TLSSocket } from 'node:tls'
import { badRequest, StatusError } from '../../object/index.ts'
import { type ResourceRoute, readRoute } from '../../object/route.ts'
import { type Attributes, authenticate } from '../auth/index.ts'
import type { PodStream, StreamRequest } from '../kubelet/index.ts'
import { type Reply, sendError } from '../wire/index.ts'
import { beginAudit } from './begin-audit.ts'
import { checkImpersonation } from './check-impersonation.ts'
import type { HandlerOptions, ResourceRequest } from './handler-options.ts'
import type { HttpRequest } from './handler-types.ts'
import { checkOwned, nodeAddressOf } from './partition-protocol.ts'
import { resolveTarget } from './resolve-target.ts'
import { attributesOf, authorizeResource } from './resource-requests.ts'
import { withRequestMetrics } from './with-request-metrics.ts'

/** What a kubelet serves for a Pod. All but the log are streams in both directions, which need an upgrade of the connection. */
const streams: readonly PodStream[] = ['attach', 'exec', 'log', 'portforward']

export function podStreamOf({ group, plural, subresource }: ResourceRoute): PodStream | undefined {
  return group === '' && plural === 'pods' ? streams.find(stream => stream === subresource) : undefined
}

/** Serves a stream to a client that has not asked for an upgrade: only a log can be. */
export async function servePodStream(
  options: HandlerOptions,
  resourceRequest: ResourceRequest,
  stream: PodStream,
  attributes: Attributes,
  response: Reply,
): Promise<void> {
  if (stream !== 'log') throw badRequest('Upgrade request required')
  await options.kubelets.log(streamRequest(options, resourceRequest, stream, attributes), response)
}

/** Serves a request of node:http to upgrade its connection. It never throws. */
export function upgradeConnection(options: HandlerOptions, request: IncomingMessage, socket: Socket, head: Buffer): void {
  const response = new (process.getBuiltinModule('node:http').ServerResponse)(request)
  response.shouldKeepAlive = false
  response.assignSocket(socket)
  socket.on('error', () => {})
  const fail = (error: unknown) => {
    sendError(response, error, internal => options.onInternalError(internal, request))
    response.once('finish', () => socket.end())
  }
  upgrade(options, request, { response, socket, head }).catch(fail)
}

type Connection = { response: ServerResponse; socket: Socket; head: Buffer }

async function upgrade(options: HandlerOptions, request: HttpRequest, { response, socket, head }: Connection): Promise<void> {
  const { services, connections, fairness, auditor } = options
  const [path = '/', search = ''] = (request.url ?? '/').split(/\?(.*)/s)
  const authentication = authenticate(request, options, services.store.nowMs)
  if (typeof authentication === 'string') throw new StatusError('Unauthorized', 'Unauthorized')
  const { user } = authentication
  checkImpersonation(request)
  if (!connections.admit(socket, user.name))
    throw new StatusError('ServiceUnavailable', 'this user has too many connections: close some, or retry later')
  const route = readRoute(path)
  const stream = route.type === 'resource' ? podStreamOf(route) : undefined
  if (route.type === 'path' || !stream) throw badRequest('this path does not support an upgrade of the connection')
  const query = new URLSearchParams(search)
  if (auditor) beginAudit(auditor, { request, path, query, user, route }, response)
  const isProxied = options.frontProxy?.isProxy(socket as TLSSocket, services.store.nowMs) ?? false
  const resourceRequest = { route, query, user, request, isProxied }
  const serve = async () => {
    if (isProxied) checkOwned(services, route)
    const attributes = attributesOf(resourceRequest)
    // A GET could otherwise run a command with the right to read.
    for (const verb of new Set([attributes.verb, 'create'])) authorizeResource(options.authorize, { ...attributes, verb })
    resolveTarget(services, resourceRequest, response)
    await options.kubelets.upgrade(streamRequest(options, resourceRequest, stream, attributes), socket, head)
    response.statusCode = 101
  }
  await fairness.start(user.name, 'user', () =>
    withRequestMetrics(options.requestMetrics, services.registry, resourceRequest, response, serve),
  )
}

function streamRequest(
  options: HandlerOptions,
  { route: { namespace, name }, query = new URLSearchParams(), user, request, isProxied = false }: ResourceRequest,
  stream: PodStream,
  attributes: Attributes,
): StreamRequest {
  const { method = 'GET', headers } = request
  const { services, authorize } = options
  const revalidate = () => {
    const authentication = authenticate(request, options, services.store.nowMs)
    return typeof authentication !== 'string' && authorize({ ...attributes, user: authentication.user }) === true
  }
  const nodeAddress = isProxied ? nodeAddressOf(request) : undefined
  return { namespace, name, stream, query, user: user.name, method, headers, isProxied, nodeAddress, revalidate }
}
