import type { IncomingMessage, ServerResponse } from 'node:http'
import { notFound, StatusError } from '../../object/index.ts'
import { type Attributes, type Authorizer, authenticate, type OpenIdDocument, type Tokens, type User } from '../auth/index.ts'
import type { Discovery } from '../discovery/index.ts'
import type { Fairness, Flow } from '../fairness/index.ts'
import { processMetrics, type RequestMetrics } from '../metrics/index.ts'
import type { Kind, Verb } from '../registry/index.ts'
import {
  type AdmissionPlugin,
  type Call,
  isLongYaml,
  LongYaml,
  methodNotAllowed,
  perform,
  readBoolean,
  type Services,
} from '../rest/index.ts'
import type { Reviews } from '../review/index.ts'
import type { Store } from '../storage/index.ts'
import type { Revalidate } from '../watch/index.ts'
import { negotiate, type Reply, type Representation, send, sendDocument, sendError } from '../wire/index.ts'
import type { Handler, HttpRequest, Mount } from './handler-types.ts'
import { type HealthChecks, type HealthResponse, isHealthPath, readHealth } from './health.ts'
import { withRequestMetrics } from './measure.ts'
import { protobufType, readProtobuf } from './protobuf.ts'
import { maxBodyBytes, readBody } from './read-body.ts'
import { authorizationVerb, selectedName } from './request-info.ts'
import { type Route, readRoute } from './route.ts'
import type { UnauthenticatedConnections } from './unauthenticated-connections.ts'

export type HandlerOptions = {
  services: Services
  discovery: Discovery
  tokens: Tokens
  authorize: Authorizer
  reviews: Reviews
  /** By table: what else decides whether an object may be written. */
  admissionPlugins: ReadonlyMap<string, AdmissionPlugin>
  openId: (path: string) => OpenIdDocument | undefined
  mounts: readonly Mount[]
  fairness: Fairness
  unauthenticated: UnauthenticatedConnections
  requestMetrics: RequestMetrics
  /** What `/metrics` says beside the process. */
  metrics: () => string
  health: HealthChecks
  onInternalError: (error: unknown, request: HttpRequest) => void
}

const longYaml = new LongYaml()
const maxUrlLength = 16 * 1024

/** Makes the function that answers every request of the TLS listener. It never throws and leaves no request unanswered. */
export function makeHandler(options: HandlerOptions): Handler {
  return (request, response) => {
    const fail = (error: unknown) => sendError(response, error, internal => options.onInternalError(internal, request))
    // A client that goes away is not our error, and an unheard 'error' event would end the process.
    response.on('error', () => {})
    try {
      const done = dispatch(options, request, response)
      if (done) done.catch(fail)
    } catch (error) {
      fail(error)
    }
  }
}

function dispatch(options: HandlerOptions, request: HttpRequest, response: Reply): Promise<void> | undefined {
  const { tokens, mounts, services } = options
  const url = request.url ?? '/'
  if (url.length > maxUrlLength)
    throw new StatusError('RequestURITooLong', `the URL must be at most ${maxUrlLength} characters`, { code: 414 })
  const question = url.indexOf('?')
  const path = question < 0 ? url : url.slice(0, question)

  const authentication = authenticate(request, tokens, services.store.nowMs)
  if (typeof authentication !== 'string') options.unauthenticated.delete(request.socket)
  for (const mount of mounts) {
    if (!path.startsWith(mount.prefix)) continue
    const user = typeof authentication === 'string' ? undefined : authentication.user
    // The listener brings these from node:http, or as node:http2's compatible objects.
    return Promise.resolve(mount.handler(request as IncomingMessage, response as ServerResponse, { user }))
  }
  const route = readRoute(path)
  const query = question < 0 ? undefined : new URLSearchParams(url.slice(question + 1))
  if (route.type === 'path' && answerAnonymous(options, route.path, query, request, response)) return undefined
  if (typeof authentication === 'string') throw new StatusError('Unauthorized', 'Unauthorized')
  checkImpersonation(request)
  if (route.type === 'path') {
    return answerPath(options, route.path, query, authentication.user, request, response)
  }
  const { user } = authentication
  const inTurn = () => answerInTurn(options, route, query, user, request, response)
  return withRequestMetrics(options.requestMetrics, services.registry, route, query, request, response, inTurn)
}

/** @throws {StatusError} Forbidden: who asks to act as another must not act as themselves instead. */
function checkImpersonation({ headers }: HttpRequest): void {
  if (headers['impersonate-user'] === undefined && headers['impersonate-group'] === undefined && headers['impersonate-uid'] === undefined)
    return
  throw new StatusError(
    'Forbidden',
    'impersonation is not served here: use a token of that user (kubectl create token for a ServiceAccount)',
  )
}

async function answerInTurn(
  options: HandlerOptions,
  route: Route & { type: 'resource' },
  query: URLSearchParams | undefined,
  user: User,
  request: HttpRequest,
  response: Reply,
): Promise<void> {
  const { fairness } = options
  const bodyBytes = declaredBytes(request)
  const entered = fairness.acquire(user.name, route.plural === 'leases', bodyBytes)
  const flow = entered instanceof Promise ? await entered : entered
  let done: Promise<void> | undefined
  try {
    if (response.destroyed) return
    if (query !== undefined && request.method === 'GET' && readBoolean(query, 'watch')) response.once('close', fairness.openWatch(flow))
    done = answerResource(options, flow, route, query, user, request, response)
    // A watch goes on for long, a list as long as its reader takes: what makes others wait is done when they return.
    if (request.method !== 'GET') await done
  } finally {
    fairness.release(flow, bodyBytes)
  }
  await done
}

/** How long the body may become as far as is known before it is read. */
function declaredBytes({ method, headers }: HttpRequest): number {
  if (method === 'GET') return 0
  const length = headers['content-length']
  return length === undefined ? (headers['transfer-encoding'] === undefined ? 0 : maxBodyBytes) : Number(length)
}

async function answerResource(
  { services, authorize, reviews, admissionPlugins, fairness, tokens }: HandlerOptions,
  flow: Flow,
  route: Route & { type: 'resource' },
  query: URLSearchParams | undefined,
  user: User,
  request: HttpRequest,
  response: Reply,
): Promise<void> {
  const { group, version, plural, namespace, name, subresource } = route
  // A namespace is in itself, for who may do what.
  const within = namespace || (plural === 'namespaces' && group === '' ? name : '')
  const method = request.method ?? 'GET'
  const verb = verbOf(method, name, subresource, query)
  const asked = authorizationVerb(method, name, query)
  const askedName = name || selectedName(asked, query)
  const attributes: Attributes = {
    user,
    verb: asked,
    group,
    resource: plural,
    subresource: subresource || undefined,
    namespace: within || undefined,
    name: askedName || undefined,
    fieldSelector: (asked === 'list' || asked === 'watch' ? query?.get('fieldSelector') : undefined) || undefined,
  }
  const allowed = authorize(attributes)
  if (allowed !== true) throw forbidden(user, asked, { ...route, namespace: within, name: askedName }, allowed)
  const kind = services.registry.find(group, version, plural)
  if (!kind) {
    // kube-apiserver answers so for groups it does not know itself.
    if (!isOwnGroup(services, group) && !services.registry.groups.get(group)?.has(version)) return sendNoSuchPath(response)
    throw noSuchResource()
  }
  if (kind.isVirtual && name) throw noSuchResource()
  // kube-apiserver answers HEAD for custom kinds, and for nothing else that is stored.
  if (method === 'HEAD' && !kind.isCustom) throw methodNotAllowed()
  if (kind.namespaced !== (namespace !== '')) {
    if (kind.isVirtual) throw noSuchResource()
    if (!kind.namespaced || name !== '') throw noSuchResource()
    // All namespaces at once can be read, not written.
    if (verb !== 'list' && verb !== 'watch') throw methodNotAllowed()
  }
  if (verb && !kind.verbs.includes(verb)) throw methodNotAllowed()
  if (kind.deprecationWarning) response.appendHeader('Warning', `299 - ${JSON.stringify(kind.deprecationWarning)}`)
  if (subresource && !hasSubresource(kind, subresource)) throw kind.isCustom ? notFound(kind, name) : noSuchResource()
  if (!verb && kind.isCustom) throw methodNotSupported(kind)
  if (!verb || (subresource && !verbsOf(subresource).includes(verb))) throw methodNotAllowed()
  const { headers } = request
  const as = negotiate(headers.accept, query?.get('includeObject') ?? undefined)
  checkForm(kind, verb, as)
  let contentType = mediaType(headers['content-type'])
  let body = ''
  if (method !== 'GET' && method !== 'HEAD') {
    const bytes = await readBody(request)
    if (contentType === protobufType) {
      contentType = 'application/json'
      body = JSON.stringify(readProtobuf(bytes))
    } else body = bytes.toString('utf8')
    if (isLongYaml(body, contentType)) {
      body = await longYaml.toJson(body)
      // Also an apply patch may be JSON.
      if (verb !== 'patch') contentType = 'application/json'
    }
  }
  const call: Call = {
    verb,
    kind,
    table: services.store.table(kind.storageName),
    namespace,
    name,
    subresource: subresource as Call['subresource'],
    query,
    userAgent: headers['user-agent'],
    acceptEncoding: headers['accept-encoding'] as string | undefined,
    as,
    user,
    contentType,
    body,
    response,
    checkCreate:
      verb === 'patch' || (kind.strategy.allowCreateOnUpdate && verb === 'update')
        ? () => {
            const mayCreate = authorize({ user, verb: 'create', group, resource: plural, namespace: within || undefined, name })
            if (mayCreate !== true) throw forbidden(user, 'create', { ...route, namespace: within }, mayCreate)
          }
        : undefined,
    admit: admissionPlugins.get(kind.storageName),
    revalidate: verb === 'watch' ? revalidate(request, tokens, services.store, authorize, attributes) : undefined,
  }
  // All that a request computes happens before it first waits.
  const startMs = performance.now()
  let done: Promise<void> | undefined
  try {
    if (kind.isVirtual) reviews.answer(call)
    else if (subresource === 'token') reviews.answerTokenRequest(call)
    else done = perform(services, call)
  } finally {
    fairness.recordCost(flow, performance.now() - startMs)
  }
  await done
}

/** Whether who opened a watch is still known by what they showed, and may still watch. */
function revalidate(request: HttpRequest, tokens: Tokens, store: Store, authorize: Authorizer, attributes: Attributes): Revalidate {
  return what => {
    const known = authenticate(request, tokens, store.nowMs)
    return typeof known !== 'string' && (what === 'credential' || authorize({ ...attributes, user: known.user }) === true)
  }
}

function verbsOf(subresource: string): readonly Verb[] {
  return subresource === 'finalize' ? ['update'] : subresource === 'token' ? ['create'] : ['get', 'update', 'patch']
}

/** @throws {StatusError} NotAcceptable when one object was asked for as a list, or a list as one. */
function checkForm(kind: Kind, verb: Verb, { form, isList }: Representation): void {
  if (form !== 'partial' || verb === 'watch' || verb === 'deletecollection' || isList === (verb === 'list')) return
  const type = kind.isCustom ? 'unstructured.Unstructured' : `${kind.group.split('.')[0] || 'core'}.${kind.kind}`
  const what = isList ? `PartialObjectMetadataList, but the requested object is not a list (*${type})` : undefined
  const message = what ?? `PartialObjectMetadata, but the requested object is a list (*${type}List)`
  throw new StatusError('NotAcceptable', `you requested ${message}`)
}

/** Kubernetes' own for custom kinds, with the verb that it found none for left out. */
function methodNotSupported({ group, plural }: Kind): StatusError {
  return new StatusError('MethodNotAllowed', ` is not supported on resources of kind ${JSON.stringify(`${plural}.${group}`)}`, {
    details: { group, kind: plural },
  })
}

function hasSubresource(kind: Call['kind'], subresource: string): boolean {
  if (subresource === 'status') return kind.hasStatus
  if (subresource === 'scale') return kind.scale !== undefined
  if (subresource === 'token') return kind.storageName === 'serviceaccounts'
  return subresource === 'finalize' && kind.plural === 'namespaces' && kind.group === ''
}

function verbOf(method: string, name: string, subresource: string, query: URLSearchParams | undefined): Verb | undefined {
  switch (method) {
    case 'HEAD':
      return name ? 'get' : 'list'
    case 'GET':
      if (name) return 'get'
      return query !== undefined && readBoolean(query, 'watch') ? 'watch' : 'list'
    case 'POST':
      return name && !subresource ? undefined : 'create'
    case 'PUT':
      return name ? 'update' : undefined
    case 'PATCH':
      return name ? 'patch' : undefined
    case 'DELETE':
      return name ? 'delete' : 'deletecollection'
    default:
      return undefined
  }
}

/** What answers without credentials: that we are here, and what we are. */
function answerAnonymous(
  { health, discovery }: HandlerOptions,
  path: string,
  query: URLSearchParams | undefined,
  request: HttpRequest,
  response: Reply,
): boolean {
  const isRead = request.method === 'GET' || request.method === 'HEAD'
  if (!isRead) return false
  if (path === '/version' || path === '/version/') {
    send(response, 200, 'application/json', discovery.version)
    return true
  }
  return isHealthPath(path) && sendHealth(response, readHealth(path, query, health))
}

function answerPath(
  { discovery, authorize, services, openId, metrics, health }: HandlerOptions,
  path: string,
  query: URLSearchParams | undefined,
  user: User,
  request: HttpRequest,
  response: Reply,
): Promise<void> | undefined {
  const verb = (request.method ?? 'get').toLowerCase()
  const allowed = authorize({ user, verb, group: '', resource: '', path })
  if (allowed !== true) {
    throw new StatusError(
      'Forbidden',
      `forbidden: User ${JSON.stringify(user.name)} cannot ${verb} path ${JSON.stringify(path)}${allowed ? `: ${allowed}` : ''}`,
      { details: {} },
    )
  }
  if (verb === 'get' && sendHealth(response, readHealth(path, query, health))) return undefined
  if (path === '/metrics' && verb === 'get') {
    const body = metrics() + processMetrics()
    const text = { code: 200, contentType: 'text/plain; version=0.0.4; charset=utf-8', headers: {}, body }
    return sendDocument(response, text, String(request.headers['accept-encoding'] ?? ''))
  }
  const document = verb === 'get' ? openId(path) : undefined
  if (document) {
    send(response, 200, document.contentType, document.text)
    return undefined
  }
  const { accept, 'if-none-match': ifNoneMatch, 'accept-encoding': acceptEncoding } = request.headers
  const hash = query?.get('hash') ?? undefined
  const found = discovery.find({ path, accept, ifNoneMatch, hash })
  if (!found) {
    const [, root, group = '', version] = path.split('/')
    const isVersion = root === 'api' ? group !== '' : root === 'apis' && version !== undefined
    if (isVersion && isOwnGroup(services, root === 'api' ? '' : group)) throw noSuchResource()
    sendNoSuchPath(response, verb === 'get' ? path : '')
    return undefined
  }
  if (verb !== 'get' && (verb !== 'head' || /^\/apis?(\/|$)/.test(path))) throw methodNotAllowed()
  return sendDocument(response, found, String(acceptEncoding ?? ''))
}

function sendHealth(response: Reply, health: HealthResponse | undefined): boolean {
  if (health) send(response, health.code, 'text/plain; charset=utf-8', health.text)
  return health !== undefined
}

function forbidden(user: User, verb: string, route: Route & { type: 'resource' }, reason: string): StatusError {
  const { group, plural, namespace, name, subresource } = route
  const what = (group ? `${plural}.${group}` : plural) + (name ? ` ${JSON.stringify(name)}` : '')
  const resource = subresource ? `${plural}/${subresource}` : plural
  const where = namespace ? `in the namespace ${JSON.stringify(namespace)}` : 'at the cluster scope'
  const because = reason ? `: ${reason}` : ''
  return new StatusError(
    'Forbidden',
    `${what} is forbidden: User ${JSON.stringify(user.name)} cannot ${verb} resource ${JSON.stringify(resource)} in API group ${JSON.stringify(group)} ${where}${because}`,
    { details: { name: name || undefined, group: group || undefined, kind: plural } },
  )
}

/** A group of built-in kinds, as opposed to one that definitions made. */
function isOwnGroup({ registry }: Services, group: string): boolean {
  for (const kinds of registry.groups.get(group)?.values() ?? []) for (const kind of kinds.values()) if (!kind.isCustom) return true
  return false
}

// The handler of OpenAPI 3 is another one, and says nothing.
function sendNoSuchPath(response: Reply, path = ''): void {
  if (path.startsWith('/openapi/v3/')) send(response, 404, '', '')
  else send(response, 404, 'text/plain; charset=utf-8', '404 page not found\n')
}

function noSuchResource(): StatusError {
  return new StatusError('NotFound', 'the server could not find the requested resource', { details: {} })
}

function mediaType(header: string | undefined): string {
  if (!header) return ''
  const end = header.indexOf(';')
  return (end < 0 ? header : header.slice(0, end)).trim().toLowerCase()
}
