import { StatusError } from '../../object/index.ts'
import { readBoolean } from '../../object/route.ts'
import type { RequestLabels, RequestMetrics } from '../metrics/index.ts'
import type { Registry } from '../registry/index.ts'
import type { Reply } from '../wire/index.ts'
import type { ResourceRequest } from './handler-options.ts'
import type { HttpRequest } from './handler-types.ts'

/** Serves a request for a resource with `serve` and counts its status and duration. A watch is counted when it ends. */
export async function withRequestMetrics(
  metrics: RequestMetrics,
  registry: Registry,
  resourceRequest: ResourceRequest,
  response: Reply,
  serve: () => Promise<void>,
): Promise<void> {
  const startedMs = performance.now()
  const { method } = resourceRequest.request
  const isMutating = method !== 'GET' && method !== 'HEAD'
  let code = 500
  metrics.requestStarted(isMutating)
  try {
    await serve()
    code = response.statusCode
  } catch (error) {
    if (error instanceof StatusError) code = error.code
    throw error
  } finally {
    metrics.requestFinished(isMutating)
    const labels = labelsOf(registry, resourceRequest, code)
    const observe = () => metrics.observe(labels, code, (performance.now() - startedMs) / 1_000)
    // There is no code when the client disconnected before the response.
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

const subresources = new Set(['attach', 'exec', 'finalize', 'log', 'portforward', 'scale', 'status', 'token'])

/** The rejections that a caller without any right can get. */
const codesWithoutRights = new Set([401, 403, 404, 405, 429])

/**
 * Requests for resources that are not served are counted without their names, which clients can invent without bound. So are rejected
 * requests: otherwise a caller without rights could create a series for every resource that is served.
 */
function labelsOf(registry: Registry, { route, query, request }: ResourceRequest, code: number): RequestLabels {
  const { group, version, plural, namespace, name, subresource } = route
  const verb = verbOf(request, name, query)
  const scope = name !== '' || verb === 'POST' ? 'resource' : namespace !== '' ? 'namespace' : 'cluster'
  const isDryRun = query?.has('dryRun') ?? false
  if (codesWithoutRights.has(code) || !registry.find(group, version, plural)) {
    return { verb, group: '', version: '', resource: '', subresource: '', scope: '', isDryRun }
  }
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
