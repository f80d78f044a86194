import type { IncomingMessage, ServerResponse } from 'node:http'
import type { WorkerPool } from '../../api/index.ts'
import { parseLabelSelector, StatusError } from '../../kubernetes/object/index.ts'
import { ClientLimiter, LimitExceededError } from '../../kubernetes/util/index.ts'
import { type AccessReviewer, forbiddenMessage } from '../delegated-auth/access-reviewer.ts'
import type { ReviewedUser } from '../delegated-auth/review-resources.ts'
import type { MountHandler } from '../mount.ts'
import { discoveryDocument } from './discovery-documents.ts'
import { group, groupVersion } from './names.ts'
import { externalMetricValueList, externalMetricValues } from './pool-metrics.ts'

export type ExternalMetricsHandlerOptions = {
  access: Pick<AccessReviewer, 'isAllowed'>
  /** @throws {StatusError} ServiceUnavailable while they are not known. */
  pools(): readonly WorkerPool[]
  nowMs(): number
}

/** Each asks the API server once, unless the answer is known. */
const requestLimits = { concurrent: 64, concurrentPerClient: 16, waitingPerClient: 1_024, waiting: 4_096 }

/**
 * The API for kube-apiserver's aggregation layer. Every user may discover it, as every API of a cluster; reading a metric needs the permission to
 * `list` it, which kube-apiserver has checked too: it is checked again because requests can also come from elsewhere. The namespace decides only who may
 * read: the metrics are those of all WorkerPools, which are cluster-scoped.
 */
export function createExternalMetricsHandler({ access, pools, nowMs }: ExternalMetricsHandlerOptions): MountHandler {
  const limiter = new ClientLimiter(requestLimits)
  return async (request, response, { user }) => {
    try {
      if (!user) throw new StatusError('Unauthorized', 'send the request through kube-apiserver, or with a bearer token')
      if (request.method !== 'GET') throw new StatusError('MethodNotAllowed', 'metrics are read-only: use GET')
      const url = new URL(request.url ?? '/', 'https://localhost')
      const path = url.pathname.replace(/\/+$/, '')
      const document = discoveryDocument(path, request.headers.accept)
      if (document) return send(response, 200, document.body, document.contentType)
      const { namespace, metric } = readPath(path)
      const selector = parseLabelSelector(url.searchParams.get('labelSelector') ?? '')
      await limiter.run(user.name, () => authorize(access, user, namespace, metric))
      if (response.destroyed) return
      const values = externalMetricValues(pools(), { metric, selector, nowMs: nowMs() })
      send(response, 200, externalMetricValueList(values))
    } catch (thrown) {
      sendError(request, response, thrown)
    }
  }
}

function readPath(path: string): { namespace: string; metric: string } {
  const [, namespace, metric] = new RegExp(`^/apis/${groupVersion}/namespaces/([^/]+)/([^/]+)$`).exec(path) ?? []
  if (namespace === undefined || metric === undefined)
    throw new StatusError(
      'NotFound',
      `the server could not find the requested resource: use /apis/${groupVersion}/namespaces/NAMESPACE/METRIC`,
    )
  return { namespace, metric }
}

/** @throws {StatusError} Forbidden. */
async function authorize(access: Pick<AccessReviewer, 'isAllowed'>, user: ReviewedUser, namespace: string, metric: string): Promise<void> {
  const attributes = { verb: 'list', group, resource: metric, namespace }
  if (!(await access.isAllowed(user, attributes))) throw new StatusError('Forbidden', forbiddenMessage(user, attributes))
}

/** An error of the API server during the review is no answer either: the client retries. */
function sendError(request: IncomingMessage, response: ServerResponse, thrown: unknown): void {
  const error = thrown instanceof LimitExceededError ? new StatusError('TooManyRequests', thrown.message) : thrown
  if (!(error instanceof StatusError)) throw error
  request.resume()
  if (error.code === 503 || error.code === 429) response.setHeader('Retry-After', '1')
  send(response, error.code, error.toStatus())
}

function send(response: ServerResponse, status: number, body: object, contentType = 'application/json'): void {
  response
    .writeHead(status, { 'Content-Type': contentType, 'Cache-Control': 'no-store', 'X-Content-Type-Options': 'nosniff' })
    .end(JSON.stringify(body))
}
