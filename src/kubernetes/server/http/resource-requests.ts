import { authorizationVerb, readBoolean } from '../../object/route.ts'
import { type Attributes, type Authorizer, authenticate } from '../auth/index.ts'
import type { Flow } from '../fairness/index.ts'
import { type Call, type Caller, perform, type Target } from '../rest/index.ts'
import { negotiate, type Reply } from '../wire/index.ts'
import type { HandlerOptions, ResourceRequest } from './handler-options.ts'
import type { HttpRequest } from './handler-types.ts'
import { forbidden, NoSuchPath } from './not-served.ts'
import { checkOwned, createBeforeOf } from './partition-protocol.ts'
import { podStreamOf, servePodStream } from './pod-streams.ts'
import { maxBodyBytes } from './read-body.ts'
import { readCallBody } from './read-call-body.ts'
import { selectedName } from './request-info.ts'
import { checkForm, resolveTarget } from './resolve-target.ts'

/** Serves a request for a resource when the fair queue of its user lets it start. */
export async function serveResource(options: HandlerOptions, resourceRequest: ResourceRequest, response: Reply): Promise<void> {
  const { fairness } = options
  const { route, query, user, request } = resourceRequest
  const bodyBytes = declaredBytes(request)
  const acquired = fairness.acquire(user.name, route.plural === 'leases' ? 'leases' : 'user', bodyBytes)
  const flow = acquired instanceof Promise ? await acquired : acquired
  let done: Promise<void> | undefined
  try {
    if (response.destroyed) return
    const isRead = request.method === 'GET'
    const isWatch = isRead && query !== undefined && readBoolean(query, 'watch')
    if (isWatch) response.once('close', fairness.openWatch(flow))
    done = serve(options, flow, resourceRequest, response)
    // A watch stays open for long, and a list takes as long as its reader. Their computation is done when the call returns.
    if (!isRead) await done
    else if (!isWatch) done = fairness.countUnread(flow, done)
  } finally {
    fairness.release(flow, bodyBytes)
  }
  await done
}

/** The largest body that the head of the request allows. */
function declaredBytes({ method, headers }: HttpRequest): number {
  if (method === 'GET') return 0
  const length = headers['content-length']
  return length === undefined ? (headers['transfer-encoding'] === undefined ? 0 : maxBodyBytes) : Number(length)
}

async function serve(options: HandlerOptions, flow: Flow, resourceRequest: ResourceRequest, response: Reply): Promise<void> {
  const { services, reviews, fairness } = options
  if (resourceRequest.isProxied) checkOwned(services, resourceRequest.route)
  const attributes = attributesOf(resourceRequest)
  authorizeResource(options.authorize, attributes)
  const target = resolveTarget(services, resourceRequest, response)
  if (target instanceof NoSuchPath) {
    target.send(response)
    return
  }
  const stream = podStreamOf(resourceRequest.route)
  if (stream) return await servePodStream(options, resourceRequest, stream, attributes, response)
  const call = await readCall(options, resourceRequest, target, attributes, response)
  // A call does all its computation before its first await.
  const startMs = performance.now()
  let done: Promise<void> | undefined
  try {
    if (target.kind.isVirtual) done = reviews.review(call) ?? undefined
    else if (resourceRequest.route.subresource === 'token') reviews.createToken(call)
    else done = perform(services, call)
  } finally {
    fairness.recordCost(flow, performance.now() - startMs)
  }
  await done
}

/** What the authorizer decides on. */
export function attributesOf({ route, query, user, request }: ResourceRequest): Attributes {
  const { group, plural, namespace, name, subresource } = route
  const verb = authorizationVerb(request.method ?? 'GET', name, query)
  return {
    user,
    verb,
    group,
    resource: plural,
    subresource: subresource || undefined,
    // For authorization, a Namespace object is in the namespace of its name.
    namespace: namespace || (plural === 'namespaces' && group === '' ? name : '') || undefined,
    name: name || selectedName(verb, query) || undefined,
    fieldSelector: (verb === 'list' || verb === 'watch' ? query?.get('fieldSelector') : undefined) || undefined,
  }
}

/** @throws {StatusError} Forbidden. */
export function authorizeResource(authorize: Authorizer, attributes: Attributes): void {
  const allowed = authorize(attributes)
  if (allowed !== true) throw forbidden(attributes, allowed)
}

async function readCall(
  options: HandlerOptions,
  resourceRequest: ResourceRequest,
  target: Target,
  attributes: Attributes,
  response: Reply,
): Promise<Call> {
  const { query, request, gatewayWatch, isProxied } = resourceRequest
  const { headers } = request
  const as = negotiate(headers.accept, query?.get('includeObject') ?? undefined)
  checkForm(target, as)
  const sent = await readCallBody(request, target.verb, attributes.user.name)
  if (response.audit) response.audit.body = sent.body
  return {
    target,
    input: { query, userAgent: headers['user-agent'], createBefore: isProxied ? createBeforeOf(request) : undefined, ...sent },
    caller: callerOf(options, request, target, attributes),
    output: { response, as, gatewayWatch, acceptEncoding: headers['accept-encoding'] as string | undefined },
  }
}

function callerOf(options: HandlerOptions, request: HttpRequest, { verb, kind, name }: Target, attributes: Attributes): Caller {
  const { authorize, admissionPlugins, deletionPlugins } = options
  const { user, group, resource, namespace } = attributes
  const mayCreate = verb === 'patch' || (kind.strategy.allowCreateOnUpdate && verb === 'update')
  return {
    user,
    admissionPlugin: admissionPlugins.get(kind.storageName),
    deletionPlugin: deletionPlugins.get(kind.storageName),
    isAllowed: more => authorize({ ...more, user }) === true,
    checkCreate: mayCreate ? () => authorizeResource(authorize, { user, verb: 'create', group, resource, namespace, name }) : undefined,
    revalidate: verb === 'watch' ? watchRevalidation(options, request, attributes) : undefined,
  }
}

/** Checks whether the credential of an open watch is still valid, and whether its user may still watch. */
function watchRevalidation(options: HandlerOptions, request: HttpRequest, attributes: Attributes) {
  const { services, authorize } = options
  return (scope: 'credential' | 'all'): boolean => {
    const authentication = authenticate(request, options, services.store.nowMs)
    if (typeof authentication === 'string') return false
    return scope === 'credential' || authorize({ ...attributes, user: authentication.user }) === true
  }
}
