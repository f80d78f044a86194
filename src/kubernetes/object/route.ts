import { badRequest } from './status-error.ts'

/** The path of a resource. */
export type ResourceRoute = {
  readonly type: 'resource'
  readonly group: string
  readonly version: string
  readonly namespace: string
  readonly plural: string
  readonly name: string
  readonly subresource: string
}

/** The meaning of a path; `path` is health, version, discovery, OpenAPI and everything unknown. */
export type Route = ResourceRoute | { readonly type: 'path'; readonly path: string }

/**
 * Parses the path of a request, without its query.
 * @throws {StatusError} BadRequest for invalid percent-encoding.
 */
export function readRoute(path: string): Route {
  const parts = path.split('/')
  if (parts[parts.length - 1] === '') parts.pop()
  // parts[0] is the empty text before the first slash.
  const isCore = parts[1] === 'api'
  const first = isCore ? 3 : 4
  if ((!isCore && parts[1] !== 'apis') || parts.length <= first) return { type: 'path', path }
  const rest = parts.slice(first)
  if (path.includes('%')) for (let i = 0; i < rest.length; i++) rest[i] = decode(rest[i]!)
  const group = isCore ? '' : parts[2]!
  const version = parts[first - 1]!
  // namespaces/NS/PLURAL is in a namespace, but namespaces/NS/status and …/finalize are the Namespace itself.
  const isInNamespace =
    rest[0] === 'namespaces' && rest.length >= 3 && !(rest.length === 3 && isCore && (rest[2] === 'status' || rest[2] === 'finalize'))
  const at = isInNamespace ? 2 : 0
  if (rest.length - at > 3 || rest.includes('')) return { type: 'path', path }
  return {
    type: 'resource',
    group,
    version,
    namespace: isInNamespace ? rest[1]! : '',
    plural: rest[at]!,
    name: rest[at + 1] ?? '',
    subresource: rest[at + 2] ?? '',
  }
}

/**
 * Whether an upgrade of the connection is considered: that of a stream into a Pod. All other requests are served as if they had not asked for one.
 */
export function mayUpgrade({ url = '/' }: { readonly url?: string | undefined }): boolean {
  return /^\/api\/v1\/namespaces\/[^/]+\/pods\/[^/]+\/(attach|exec|portforward)(\?|$)/.test(url)
}

/** Parses a boolean as Kubernetes does: absent, `0` and `false` are false, everything else is true. */
export function readBoolean(query: URLSearchParams | undefined, name: string): boolean {
  const value = query?.get(name)
  return value !== undefined && value !== null && value !== '0' && value.toLowerCase() !== 'false'
}

/** The verb that authorization decides on, as in kube-apiserver's RequestInfo; also for requests that are not supported. */
export function authorizationVerb(method: string, name: string, query: URLSearchParams | undefined): string {
  switch (method) {
    case 'GET':
    case 'HEAD':
      if (name) return 'get'
      return readBoolean(query, 'watch') ? 'watch' : 'list'
    case 'POST':
      return 'create'
    case 'PUT':
      return 'update'
    case 'PATCH':
      return 'patch'
    case 'DELETE':
      return name ? 'delete' : 'deletecollection'
    default:
      return method.toLowerCase()
  }
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    throw badRequest(`the path has an invalid percent-encoding: ${JSON.stringify(text.slice(0, 80))}`)
  }
}
