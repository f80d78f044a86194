import { StatusError } from '../../object/index.ts'
import type { Authorizer } from '../auth/index.ts'
import { methodNotAllowed } from '../rest/index.ts'
import { type Reply, send, sendDocument } from '../wire/index.ts'
import type { HandlerOptions, PathRequest } from './handler-options.ts'
import type { HttpRequest } from './handler-types.ts'
import { type HealthResponse, isHealthPath, readHealth } from './health.ts'
import { isBuiltInGroup, NoSuchPath, noSuchResource } from './not-served.ts'

/** Serves the paths that need no credentials: health and version. False for any other path. */
export function serveAnonymousPath(
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

/** Serves the paths that are no resources: health checks by name, metrics, OpenID documents, discovery and OpenAPI. */
export function servePath(options: HandlerOptions, pathRequest: PathRequest, response: Reply): Promise<void> | undefined {
  const { discovery, authorize, services, openId, health } = options
  const { path, query, request } = pathRequest
  const verb = (request.method ?? 'get').toLowerCase()
  authorizePath(authorize, pathRequest, verb)
  if (verb === 'get' && sendHealth(response, readHealth(path, query, health))) return undefined
  if (path === '/metrics' && verb === 'get') return sendMetrics(options, request, response)
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
    if (isVersion && isBuiltInGroup(services, root === 'api' ? '' : group)) throw noSuchResource()
    new NoSuchPath(verb === 'get' ? path : '').send(response)
    return undefined
  }
  if (verb !== 'get' && (verb !== 'head' || /^\/apis?(\/|$)/.test(path))) throw methodNotAllowed()
  return sendDocument(response, found, String(acceptEncoding ?? ''))
}

/** @throws {StatusError} Forbidden. */
function authorizePath(authorize: Authorizer, { path, user }: PathRequest, verb: string): void {
  const allowed = authorize({ user, verb, group: '', resource: '', path })
  if (allowed === true) return
  throw new StatusError(
    'Forbidden',
    `forbidden: User ${JSON.stringify(user.name)} cannot ${verb} path ${JSON.stringify(path)}${allowed ? `: ${allowed}` : ''}`,
    { details: {} },
  )
}

async function sendMetrics({ metrics }: HandlerOptions, { headers }: HttpRequest, response: Reply): Promise<void> {
  const document = { code: 200, contentType: 'text/plain; version=0.0.4; charset=utf-8', headers: {}, body: await metrics.all() }
  await sendDocument(response, document, String(headers['accept-encoding'] ?? ''))
}

function sendHealth(response: Reply, health: HealthResponse | undefined): boolean {
  if (health) send(response, health.code, 'text/plain; charset=utf-8', health.text)
  return health !== undefined
}
