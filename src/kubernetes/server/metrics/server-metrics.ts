import type { Registry } from 'prom-client'
import { processRegistry } from './process-registry.ts'
import { requestMetricsText } from './request-metrics-text.ts'
import { type MetricSources, serverRegistry } from './server-registry.ts'

/** The content of `/metrics`. prom-client is loaded at the first scrape: it takes 19 MB, and many servers are never scraped. */
export class ServerMetrics {
  readonly #sources: MetricSources
  #registries: Promise<{ server: Registry; process: Registry }> | undefined

  constructor(sources: MetricSources) {
    this.#sources = sources
  }

  /** The metrics of the server and of this process, in Prometheus' text format. */
  async all(): Promise<Buffer> {
    const { server, process } = await this.#load()
    const requests = await requestMetricsText(this.#sources.requests)
    return Buffer.concat([...requests, Buffer.from(`${await server.metrics()}\n${await process.metrics()}`)])
  }

  /** The metrics of the server, in Prometheus' text format. */
  async server(): Promise<string> {
    const { server } = await this.#load()
    return Buffer.concat(await requestMetricsText(this.#sources.requests)).toString() + (await server.metrics())
  }

  #load(): Promise<{ server: Registry; process: Registry }> {
    this.#registries ??= import('prom-client').then(prom => ({
      server: serverRegistry(prom, this.#sources),
      process: processRegistry(prom),
    }))
    return this.#registries
  }
}
