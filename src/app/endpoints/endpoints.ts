/**
 * @module app/endpoints: health, metrics and queue. Start reading here.
 * In: controllers and a registry of metrics. Out: a plain HTTP listener, and handlers of `/queue` and `/metrics` for listeners with TLS.
 * Out of scope: the console (`console/`), what the queue contains (`controllers/dispatch/`).
 */
import type { Registry } from 'prom-client'
import type { Log } from '../../kubernetes/controller/index.ts'
import type { Address } from '../address.ts'
import type { Controllers } from '../controllers/controllers.ts'
import type { Mount } from '../mount.ts'
import { type HttpListener, type HttpListenerOptions, startHttpListener } from './http-listener.ts'
import { queueResponse } from './queue-endpoint.ts'

export type EndpointsOptions = {
  address: Address
  controllers: Pick<Controllers, 'manager' | 'dispatch'>
  registry: Registry
  /** Further metrics in Prometheus' text format. */
  moreMetrics?(): Promise<string>
  mounts: readonly Mount[]
  console?: HttpListenerOptions['console']
  /** Reads metrics and queue. */
  statusToken: string
  /** Password or bearer token of an administrator. Default: there is none. */
  adminToken?: string | undefined
  log: Log
}

/** Health, metrics and queue of a process with controllers. */
export async function startEndpoints(options: EndpointsOptions): Promise<HttpListener> {
  const { address, controllers, registry, mounts, statusToken, adminToken, log } = options
  const { manager, dispatch } = controllers
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
    queue: url => queueResponse(url, dispatch.queue),
    mounts,
    console: options.console,
    statusToken,
    adminToken,
    onError: error => log.error({ err: error }, 'a request to the health address failed'),
  })
}
