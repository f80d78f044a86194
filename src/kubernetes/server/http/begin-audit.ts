import type { Route } from '../../object/route.ts'
import { authorizationVerb } from '../../object/route.ts'
import type { Auditor } from '../audit/index.ts'
import type { User } from '../auth/index.ts'
import type { Reply } from '../wire/index.ts'
import type { HttpRequest } from './handler-types.ts'

export type AuditedRequest = {
  readonly request: HttpRequest
  readonly path: string
  readonly query: URLSearchParams | undefined
  readonly user: User
  readonly route: Route
}

/** Tells the audit log about a request of an authenticated user before it is served. */
export function beginAudit(auditor: Auditor, { request, path, query, user, route }: AuditedRequest, response: Reply): void {
  const method = request.method ?? 'GET'
  if (route.type === 'resource' && (method === 'GET' || method === 'HEAD') && !auditor.auditsReadsOf(route.plural)) return
  const {
    group = '',
    version = '',
    plural = '',
    subresource = '',
    namespace = '',
    name = '',
  } = route as Partial<Extract<Route, { type: 'resource' }>>
  const isResource = route.type === 'resource'
  auditor.begin(
    {
      user,
      verb: isResource ? authorizationVerb(method, name, query) : method.toLowerCase(),
      path,
      uri: request.url ?? '/',
      version,
      // For authorization too, a Namespace object is in the namespace of its name.
      resource: isResource
        ? { group, plural, subresource, name, namespace: namespace || (plural === 'namespaces' && group === '' ? name : '') }
        : undefined,
      userAgent: request.headers['user-agent'],
      address: request.socket.remoteAddress,
    },
    response,
  )
}
