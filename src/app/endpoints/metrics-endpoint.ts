import type { Registry } from 'prom-client'
import type { Client } from '../../kubernetes/client/index.ts'
import { AccessReviewer } from '../delegated-auth/access-reviewer.ts'
import type { MountHandler } from '../mount.ts'

const path = '/metrics'

/** `GET /metrics` in Prometheus' text format, for users with the permission to `get` the non-resource URL `/metrics`, as Kubernetes' components serve it. */
export function createMetricsHandler(client: Client, registry: Registry): MountHandler {
  const access = new AccessReviewer(client)
  return async (request, response, { user }) => {
    const send = (status: number, text: string, headers: Record<string, string> = {}) => {
      const all = { 'Content-Type': 'text/plain; charset=utf-8', 'X-Content-Type-Options': 'nosniff', ...headers }
      response.writeHead(status, all).end(text)
    }
    if ((request.url ?? '').split('?', 1)[0] !== path) return send(404, `not found: use ${path}\n`)
    if (request.method !== 'GET') return send(405, 'method not allowed: use GET\n', { Allow: 'GET' })
    if (!user) return send(401, 'credentials are required: the bearer token of a user\n')
    if (!(await access.isAllowed(user, { verb: 'get', path })))
      return send(403, `forbidden: User ${JSON.stringify(user.name)} cannot get path "${path}"\n`)
    send(200, await registry.metrics(), { 'Content-Type': registry.contentType })
  }
}
