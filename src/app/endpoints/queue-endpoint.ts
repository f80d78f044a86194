import type { ServerResponse } from 'node:http'
import { runResource } from '../../api/index.ts'
import { maxReportedRuns, type QueueReport, type QueueReportOptions } from '../../controllers/dispatch/index.ts'
import type { Client } from '../../kubernetes/client/index.ts'
import { badRequest, StatusError } from '../../kubernetes/object/index.ts'
import { ClientLimiter, LimitExceededError } from '../../kubernetes/util/index.ts'
import { AccessReviewer } from '../delegated-auth/access-reviewer.ts'
import type { ReviewedUser } from '../delegated-auth/review-resources.ts'
import type { MountHandler } from '../mount.ts'

/** Undefined if another process leads, which has the queue. */
type ReadQueue = (options: QueueReportOptions) => QueueReport | undefined

/** Each asks the API server once, unless the answer is known. */
const requestLimits = { concurrent: 64, concurrentPerClient: 8, waitingPerClient: 256, waiting: 4_096 }

/**
 * `GET /queue[?pool=&namespace=&limit=]` on the address of the API server, for `oarlock queue`: the queue as JSON. The user must have
 * the permission to list Runs in all namespaces, or in `namespace`; then only Runs and tenants of that namespace are shown.
 */
export function createQueueHandler(client: Client, read: ReadQueue): MountHandler {
  const access = new AccessReviewer(client)
  const limiter = new ClientLimiter(requestLimits)
  return async (request, response, { user }) => {
    try {
      const url = request.url ?? ''
      if (url.split('?', 1)[0] !== '/queue') throw new StatusError('NotFound', 'the server could not find the requested resource')
      if (!user) throw new StatusError('Unauthorized', 'send a token or a client certificate')
      if (request.method !== 'GET') throw new StatusError('MethodNotAllowed', 'use GET')
      const options = readOptions(url)
      await limiter.run(user.name, async () => {
        await authorizeListRuns(access, user, options.namespace)
        if (!response.destroyed) send(response, 200, reportOf(read, options))
      })
    } catch (thrown) {
      const error = thrown instanceof LimitExceededError ? new StatusError('TooManyRequests', thrown.message) : thrown
      if (!(error instanceof StatusError)) throw error
      if (error.code === 503 || error.code === 429) response.setHeader('Retry-After', '1')
      send(response, error.code, error.toStatus())
    }
  }
}

/** The response of `/queue` on the plain HTTP listener, which has checked access as for metrics. */
export function queueResponse(url: string, read: ReadQueue): { status: number; body: object } {
  try {
    return { status: 200, body: reportOf(read, readOptions(url)) }
  } catch (error) {
    if (!(error instanceof StatusError)) throw error
    return { status: error.code, body: error.toStatus() }
  }
}

/** @throws {StatusError} ServiceUnavailable, if another process leads. */
function reportOf(read: ReadQueue, options: QueueReportOptions): QueueReport {
  const report = read(options)
  if (!report) throw new StatusError('ServiceUnavailable', 'another process leads, or none yet')
  return report
}

const parameters = ['pool', 'namespace', 'limit']

function readOptions(url: string): QueueReportOptions {
  const query = new URL(url, 'http://localhost').searchParams
  const unknown = [...query.keys()].find(key => !parameters.includes(key))
  if (unknown !== undefined) throw badRequest(`unknown parameter ${JSON.stringify(unknown)}: allowed are ${parameters.join(', ')}`)
  const limit = query.get('limit')
  if (limit !== null && !(/^\d{1,6}$/.test(limit) && Number(limit) <= maxReportedRuns))
    throw badRequest(`limit must be an integer from 0 to ${maxReportedRuns}, got ${JSON.stringify(limit)}`)
  return {
    pool: query.get('pool') ?? undefined,
    namespace: query.get('namespace') ?? undefined,
    limit: limit === null ? undefined : Number(limit),
  }
}

/** @throws {StatusError} Forbidden, if the user has no permission. */
async function authorizeListRuns(access: AccessReviewer, user: ReviewedUser, namespace: string | undefined): Promise<void> {
  if (await access.isAllowed(user, { verb: 'list', resource: runResource.plural, namespace })) return
  const where = namespace === undefined ? 'in all namespaces' : `in namespace ${namespace}`
  throw new StatusError('Forbidden', `user ${JSON.stringify(user.name)} cannot list runs ${where}`)
}

function send(response: ServerResponse, status: number, body: object): void {
  response
    .writeHead(status, { 'Content-Type': 'application/json', 'Cache-Control': 'no-store', 'X-Content-Type-Options': 'nosniff' })
    .end(JSON.stringify(body))
}
