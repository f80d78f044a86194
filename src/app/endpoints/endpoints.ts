/**
 * @module app/endpoints: health, metrics, queue and status page. Start reading here.
 * In: controllers and a registry of metrics. Out: a plain HTTP listener, and handlers of `/queue` and `/metrics` for listeners with TLS.
 * Out of scope: how the page looks (`console/`), what the queue contains (`controllers/dispatch/`).
 */
import type { Registry } from 'prom-client'
import { renderStatusPage } from '../../console/index.ts'
import type { Log } from '../../kubernetes/controller/index.ts'
import type { Address } from '../address.ts'
import type { Controllers } from '../controllers/controllers.ts'
import type { Mount } from '../mount.ts'
import { type HttpListener, type HttpListenerOptions, startHttpListener } from './http-listener.ts'
import { queueResponse } from './queue-endpoint.ts'

export type EndpointsOptions = {
  address: Address
  controllers: Pick<Controllers, 'manager' | 'dispatch' | 'stacks' | 'runs' | 'workers'>
  registry: Registry
  /** Further metrics in Prometheus' text format. */
  moreMetrics?(): Promise<string>
  mounts: readonly Mount[]
  console?: HttpListenerOptions['console']
  /** Reads page, metrics and queue. */
  statusToken: string
  /** Password or bearer token of an administrator. Default: there is none. */
  adminToken?: string | undefined
  apiUrl: string
  version: string
  log: Log
}

/** Health, metrics, queue and status page of a process with controllers. */
export async function startEndpoints(options: EndpointsOptions): Promise<HttpListener> {
  const { address, controllers, registry, mounts, statusToken, adminToken, apiUrl, version, log } = options
  const { manager, dispatch, stacks, runs, workers } = controllers
  let hasStarted = false
  const readiness = (): string[] => {
    const { ok, publicReasons } = manager.readyz()
    hasStarted ||= ok
    return publicReasons
  }
  return await startHttpListener({
    address,
    health: {
      livez: () => manager.healthz().publicReasons,
      readyz: readiness,
      startupz: () => (hasStarted ? [] : readiness()),
    },
    metrics: async () => ({
      contentType: registry.contentType,
      text: (await registry.metrics()) + ((await options.moreMetrics?.()) ?? ''),
    }),
    page: () => renderStatusPage({ stacks: stacks.list(), runs: runs.list(), workers: workers.list(), version, apiUrl, nowMs: Date.now() }),
    queue: url => queueResponse(url, dispatch.queue),
    mounts,
    console: options.console,
    statusToken,
    adminToken,
    onError: error => log.error({ err: error }, 'request to the status page failed'),
  })
}
