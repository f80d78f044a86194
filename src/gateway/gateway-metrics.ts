import { Counter, Gauge, Histogram, type Registry } from 'prom-client'
import type { Partition } from './partition/index.ts'
import { gatewayUser, type RequestLimits } from './request/index.ts'
import type { ClientWatches } from './watch/index.ts'

/** What is read when metrics are scraped. */
export type MetricSources = {
  readonly limits: RequestLimits
  readonly watches: ClientWatches
  partitions(): readonly { readonly name: string; readonly connection: Partition | undefined }[]
}

/** One request, while it is served. */
export type RequestTrack = {
  /** Empty for what is no request for a resource. */
  verb: string
  /** Where it went; `merged` for several, and empty if it went nowhere. */
  partition: string
}

/** Names of Tenants are the users' to choose: more are counted together. */
const maxTenants = 200
/** Around the latency of a request that is passed on, in seconds. */
const buckets = [0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60]

/** The metrics of a gateway. Labels are verbs, codes, partitions (at most 64) and up to 200 Tenants. */
export class GatewayMetrics {
  readonly #requests: Counter<'verb' | 'code' | 'partition'>
  readonly #durations: Histogram<'verb'>
  readonly #misdirected: Counter<'partition'>
  readonly #events: Counter
  readonly #reconnects: Counter<'partition'>
  readonly #slowClients: Counter

  constructor(registry: Registry, sources: MetricSources) {
    const registers = [registry]
    this.#requests = new Counter({
      name: 'oarlock_gateway_requests_total',
      help: 'Requests by verb, status code and partition: merged if several have answered, empty if none was asked.',
      labelNames: ['verb', 'code', 'partition'],
      registers,
    })
    this.#durations = new Histogram({
      name: 'oarlock_gateway_request_duration_seconds',
      help: 'Time until the response of a request was sent, without watches.',
      labelNames: ['verb'],
      ...{ buckets, registers },
    })
    this.#misdirected = new Counter({
      name: 'oarlock_gateway_misdirected_requests_total',
      help: 'Requests that a partition did not serve (421), because the routing map of this gateway was outdated.',
      labelNames: ['partition'],
      registers,
    })
    this.#events = new Counter({
      name: 'oarlock_gateway_watch_events_total',
      help: 'Events of merged watches that came from partitions.',
      registers,
    })
    this.#reconnects = new Counter({
      name: 'oarlock_gateway_watch_reconnects_total',
      help: 'Watches of a partition that broke and were opened again.',
      labelNames: ['partition'],
      registers,
    })
    this.#slowClients = new Counter({
      name: 'oarlock_gateway_slow_clients_total',
      help: 'Watches that were ended because their client did not read what was sent.',
      registers,
    })
    addScraped(registry, sources)
  }

  /** `seconds` is not counted of watches: it is how long the client watched. */
  observe({ verb, partition }: RequestTrack, code: number, seconds: number): void {
    this.#requests.inc({ verb, code, partition })
    if (verb !== 'watch') this.#durations.observe({ verb }, seconds)
  }

  misdirected(partition: string): void {
    this.#misdirected.inc({ partition })
  }

  eventsPassed(count: number): void {
    this.#events.inc(count)
  }

  reconnected(partition: string): void {
    this.#reconnects.inc({ partition })
  }

  slowClient(): void {
    this.#slowClients.inc()
  }
}

function addScraped(registry: Registry, { limits, watches, partitions }: MetricSources): void {
  const registers = [registry]
  const byTenant = (name: string, help: string, counts: () => ReadonlyMap<string, number>) =>
    new Gauge({
      ...{ name, help, registers, labelNames: ['tenant'] },
      collect() {
        this.reset()
        for (const [index, [tenant, count]] of [...counts()].entries()) this.inc({ tenant: index < maxTenants ? tenant : 'other' }, count)
      },
    })
  const gauge = (name: string, help: string, read: () => number) =>
    new Gauge({
      ...{ name, help, registers },
      collect() {
        this.set(read())
      },
    })
  byTenant(
    'oarlock_gateway_requests_in_progress',
    'Requests in progress for namespaces of a Tenant, without watches.',
    () => limits.requestsOfTenants,
  )
  byTenant('oarlock_gateway_tenant_watches', 'Open watches of namespaces of a Tenant.', () => limits.watchesOfTenants)
  new Counter({
    name: 'oarlock_gateway_rejected_requests_total',
    help: 'Requests rejected with 429 because their Tenant or user had too many.',
    registers,
    collect() {
      this.reset()
      this.inc(limits.rejected)
    },
  })
  new Gauge({
    name: 'oarlock_gateway_client_watches',
    help: 'Open watches of clients: shared with others, alone with watches of their own in several partitions, or forwarded to one partition.',
    labelNames: ['mode'],
    registers,
    collect() {
      for (const [mode, count] of Object.entries(watches.clientCounts())) this.set({ mode }, count)
    },
  })
  new Gauge({
    name: 'oarlock_gateway_upstream_watches',
    help: 'Watches that this gateway has open in a partition, by where objects of the kind are: namespaced, replicated, owned or home.',
    labelNames: ['partition', 'class'],
    registers,
    collect() {
      this.reset()
      for (const { partition, kindClass } of watches.upstream()) this.inc({ partition, class: kindClass })
    },
  })
  gauge('oarlock_gateway_shared_watches', 'Collections that are watched once for all clients.', () => watches.sharedCount)
  gauge(
    'oarlock_gateway_shared_watch_bytes',
    'Bytes of recent events from which clients of shared watches continue.',
    () => watches.ringBytes,
  )
  new Gauge({
    name: 'oarlock_gateway_partition_up',
    help: 'Whether a partition reports its progress to this gateway: 1 or 0, asked at the scrape.',
    labelNames: ['partition'],
    registers,
    async collect() {
      const known = partitions()
      const up = await Promise.all(
        known.map(({ connection }) =>
          (connection?.progress(gatewayUser, 0) ?? Promise.reject(new Error('it has no address'))).then(
            () => 1,
            () => 0,
          ),
        ),
      )
      this.reset()
      for (const [index, { name }] of known.entries()) this.set({ partition: name }, up[index] ?? 0)
    },
  })
}
