import type { IncomingMessage, ServerResponse } from 'node:http'
import { apiGroup } from '../api/index.ts'
import { maxReportedRuns, type QueueReport, type QueueReportOptions } from '../controllers/dispatch/index.ts'
import type { Client } from '../kubernetes/client/index.ts'
import { badRequest, describeResource, StatusError } from '../kubernetes/object/index.ts'

type HttpUser = { readonly name: string; readonly groups: readonly string[] }
type ReadQueue = (options: QueueReportOptions) => QueueReport

const reviewResource = describeResource<{ spec: object; status?: { allowed?: boolean } }>({
  group: 'authorization.k8s.io',
  version: 'v1',
  kind: 'SubjectAccessReview',
  plural: 'subjectaccessreviews',
  scope: 'Cluster',
})

/**
 * `GET /queue[?pool=&namespace=&limit=]` on the address of the API server, for `oarlock queue`: the queue as JSON. The user must have
 * the permission to list Runs in all namespaces, or in `namespace`; then only Runs and tenants of that namespace are shown.
 */
export function createQueueHandler(client: Client, read: ReadQueue) {
  return async (request: IncomingMessage, response: ServerResponse, user: HttpUser | undefined): Promise<void> => {
    try {
      const url = request.url ?? ''
      if (url.split('?', 1)[0] !== '/queue') throw new StatusError('NotFound', 'the server could not find the requested resource')
      if (!user) throw new StatusError('Unauthorized', 'send a token or a client certificate')
      if (request.method !== 'GET') throw new StatusError('MethodNotAllowed', 'use GET')
      const options = readOptions(url)
      await authorizeListRuns(client, user, options.namespace)
      send(response, 200, read(options))
    } catch (error) {
      if (!(error instanceof StatusError)) throw error
      send(response, error.code, error.toStatus())
    }
  }
}

/** The response of `/queue` on the plain HTTP listener, which has checked access as for metrics. */
export function queueResponse(url: string, read: ReadQueue): { status: number; body: object } {
  try {
    return { status: 200, body: read(readOptions(url)) }
  } catch (error) {
    if (!(error instanceof StatusError)) throw error
    return { status: error.code, body: error.toStatus() }
  }
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
async function authorizeListRuns(client: Client, user: HttpUser, namespace: string | undefined): Promise<void> {
  const resourceAttributes = { verb: 'list', group: apiGroup, resource: 'runs', ...(namespace !== undefined && { namespace }) }
  const spec = { user: user.name, groups: [...user.groups], resourceAttributes }
  const review = await client.resource(reviewResource).create({ metadata: { name: '' }, spec })
  if (review.status?.allowed === true) return
  const where = namespace === undefined ? 'in all namespaces: choose one with ?namespace=' : `in namespace ${namespace}`
  throw new StatusError('Forbidden', `user ${JSON.stringify(user.name)} cannot list runs ${where}`)
}

function send(response: ServerResponse, status: number, body: object): void {
  response
    .writeHead(status, { 'Content-Type': 'application/json', 'Cache-Control': 'no-store', 'X-Content-Type-Options': 'nosniff' })
    .end(JSON.stringify(body))
}
