import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { ConnectionLimiter, connectionLimits, type HealthChecks, respondToHealthCheck } from '../util/index.ts'

/** `port` 0 selects a free port. `host` defaults to all addresses, because kubelet and Prometheus connect from outside the Pod. */
export type ProbeOptions = {
  port: number
  host?: string | undefined
  /** Whether the request may read `/metrics`, for example by its bearer token. Default: every request may. */
  mayReadMetrics?: (request: IncomingMessage) => boolean
}

/** Data sources of the endpoints. */
export type ProbeSources = HealthChecks & {
  /** The text of /metrics; undefined: not served. */
  metrics: (() => Promise<{ contentType: string; text: string }>) | undefined
}

/**
 * Serves `/healthz`, `/livez`, `/readyz` and `/metrics` over plain HTTP ({@link respondToHealthCheck}).
 */
export class ProbeServer {
  readonly port: number
  readonly #server: Server

  private constructor(server: Server) {
    this.#server = server
    this.port = (server.address() as AddressInfo).port
  }

  /** @throws {Error} naming the address if the server cannot listen on it. */
  static async start({ port, host, mayReadMetrics = () => true }: ProbeOptions, sources: ProbeSources): Promise<ProbeServer> {
    const { createServer } = process.getBuiltinModule('node:http')
    const server = createServer((request, response) => {
      if (respondToHealthCheck(sources, request, response)) return
      const path = request.url?.split('?')[0]
      if (request.method !== 'GET' && request.method !== 'HEAD') return send(response, 405, 'only GET and HEAD are allowed')
      if (path !== '/metrics' || !sources.metrics)
        return send(response, 404, 'not found: available paths are /healthz, /livez, /readyz and /metrics')
      if (!mayReadMetrics(request)) {
        response.setHeader('www-authenticate', 'Bearer realm="metrics"')
        return send(response, 401, 'unauthorized: a bearer token is required')
      }
      sources.metrics().then(
        ({ text, contentType }) => send(response, 200, text, contentType),
        () => send(response, 500, 'the metrics could not be collected'),
      )
    })
    server.requestTimeout = 30_000
    new ConnectionLimiter(connectionLimits().plain).limit(server)
    server.on('clientError', (_error, socket) => socket.destroy())
    await new Promise<void>((resolve, reject) => {
      server.once('error', error => {
        const { code = error.message } = error as NodeJS.ErrnoException
        reject(new Error(`cannot serve probes on ${host ?? '*'}:${port} (${code}): is the port in use?`, { cause: error }))
      })
      server.listen(port, host, resolve)
    })
    // Such as too many open files while connections are accepted: without a listener it would end the process.
    server.on('error', () => {})
    return new ProbeServer(server)
  }

  async close(): Promise<void> {
    await new Promise<void>(resolve => {
      this.#server.close(() => resolve())
      this.#server.closeAllConnections()
    })
  }
}

function send(response: ServerResponse, status: number, text: string, contentType = 'text/plain; charset=utf-8'): void {
  response.writeHead(status, { 'content-type': contentType, 'x-content-type-options': 'nosniff' }).end(text)
}
