import { StatusError } from '../../object/index.ts'
import type { RequestLabels, RequestMetrics } from '../metrics/index.ts'
import type { Registry } from '../registry/index.ts'
import { readBoolean } from '../rest/index.ts'
import type { Reply } from '../wire/index.ts'
import type { HttpRequest } from './handler-types.ts'
import type { Route } from './route.ts'

type ResourceRoute = Route & { type: 'resource' }

/** Has a request for a resource answered, and counts it: how it ended, how long it took. A watch is counted at its end. */
export async function withRequestMetrics(
  metrics: RequestMetrics,
  registry: Registry,
  route: ResourceRoute,
  query: URLSearchParams | undefined,
  request: HttpRequest,
  response: Reply,
  answer: () => Promise<void>,
): Promise<void> {
  const startedMs = performance.now()
  const isMutating = request.method !== 'GET' && request.method !== 'HEAD'
  let code = 500
  metrics.requestStarted(isMutating)
  try {
    await answer()
    code = response.statusCode
  } catch (error) {
    if (error instanceof StatusError) code = error.code
    throw error
  } finally {
    metrics.requestFinished(isMutating)
    const labels = labelsOf(registry, route, query, request)
    const observe = () => metrics.observe(labels, code, (performance.now() - startedMs) / 1_000)
    // Whoever left without an answer got no code.
    if (labels.verb !== 'WATCH' || code !== 200 || response.closed) {
      if (code > 0) observe()
    } else {
      const closed = metrics.watchOpened(labels)
      response.once('close', () => {
        closed()
        observe()
      })
    }
  }
}

const subresources = new Set(['status', 'scale', 'finalize', 'token'])

/** What is not served is counted without its name. */
function labelsOf(registry: Registry, route: ResourceRoute, query: URLSearchParams | undefined, request: HttpRequest): RequestLabels {
  const { group, version, plural, namespace, name, subresource } = route
  const verb = verbOf(request, name, query)
  const scope = name !== '' || verb === 'POST' ? 'resource' : namespace !== '' ? 'namespace' : 'cluster'
  const isDryRun = query?.has('dryRun') ?? false
  if (!registry.find(group, version, plural)) return { verb, group: '', version: '', resource: '', subresource: '', scope, isDryRun }
  return { verb, group, version, resource: plural, subresource: subresources.has(subresource) ? subresource : '', scope, isDryRun }
}

function verbOf({ method, headers }: HttpRequest, name: string, query: URLSearchParams | undefined): string {
  switch (method) {
    case 'GET':
      return name !== '' ? 'GET' : query !== undefined && isWatch(query) ? 'WATCH' : 'LIST'
    case 'PATCH':
      return headers['content-type']?.startsWith('application/apply-patch') ? 'APPLY' : 'PATCH'
    case 'DELETE':
      return name === '' ? 'DELETECOLLECTION' : 'DELETE'
    case 'POST':
    case 'PUT':
    case 'HEAD':
      return method
    default:
      return 'OTHER'
  }
}

function isWatch(query: URLSearchParams): boolean {
  try {
    return readBoolean(query, 'watch')
  } catch {
    return false
  }
}
