import type { Metric, Registry } from 'prom-client'
import { bucketSeconds, type RequestLabels, type RequestMetrics, type RequestSeries } from './request-metrics.ts'
import type { ResourceCount, ServerStats } from './server-stats.ts'

export type MetricSources = {
  readonly kubernetesVersion: string
  readonly requests: RequestMetrics
  readonly resourceCounts: () => readonly ResourceCount[]
  readonly stats: () => ServerStats
}

type Prom = typeof import('prom-client')

const requestLabels = ['component', 'group', 'resource', 'scope', 'subresource', 'verb', 'version'] as const

/** A registry with the metrics of a server. Every value is read from `sources` at a scrape. */
export function serverRegistry(prom: Prom, sources: MetricSources): Registry {
  const registry = new prom.Registry()
  addRequestMetrics(prom, registry, sources.requests)
  addObjectCounts(prom, registry, sources)
  addServerStats(prom, registry, sources.stats)
  return registry
}

function addRequestMetrics({ Counter, Gauge }: Prom, registry: Registry, requests: RequestMetrics): void {
  const registers = [registry]
  new Counter({
    name: 'apiserver_request_total',
    help: 'Requests for resources by verb, dry run, group, version, resource, scope and HTTP code.',
    labelNames: ['code', 'dry_run', ...requestLabels],
    registers,
    collect() {
      this.reset()
      for (const { labels, countByCode } of requests.series()) {
        for (const [code, count] of countByCode) this.inc({ code, dry_run: dryRun(labels), ...labelsOf(labels) }, count)
      }
    },
  })
  registry.registerMetric(requestDurations(requests))
  new Gauge({
    name: 'apiserver_current_inflight_requests',
    help: 'Maximum number of requests in flight since the last scrape.',
    labelNames: ['request_kind'],
    registers,
    collect() {
      const { mutating, readOnly } = requests.takePeaks()
      this.set({ request_kind: 'mutating' }, mutating)
      this.set({ request_kind: 'readOnly' }, readOnly)
    },
  })
  new Gauge({
    name: 'apiserver_longrunning_requests',
    help: 'Open watches.',
    labelNames: requestLabels,
    registers,
    collect() {
      this.reset()
      for (const { labels, openWatches } of requests.series()) if (labels.verb === 'WATCH') this.set(labelsOf(labels), openWatches)
    },
  })
}

/** A histogram of counts that were collected elsewhere, which prom-client's Histogram cannot be set to. */
function requestDurations(requests: RequestMetrics): Metric<string> {
  const name = 'apiserver_request_duration_seconds'
  const help = 'Duration of requests for resources in seconds; for watches, until their end.'
  const metric = {
    name,
    async get() {
      const values = []
      for (const series of requests.series()) if (series.countByCode.size > 0) values.push(...durationValues(name, series))
      return { name, help, type: 'histogram', aggregator: 'sum', values }
    },
    reset() {},
  }
  return metric as unknown as Metric<string>
}

function* durationValues(name: string, { labels, buckets, sumSeconds }: RequestSeries) {
  const all = { dry_run: dryRun(labels), ...labelsOf(labels) }
  let count = 0
  for (const [i, le] of bucketSeconds.entries()) {
    count += buckets[i]!
    yield { metricName: `${name}_bucket`, labels: { ...all, le }, value: count }
  }
  count += buckets[bucketSeconds.length]!
  yield { metricName: `${name}_bucket`, labels: { ...all, le: '+Inf' }, value: count }
  yield { metricName: `${name}_sum`, labels: all, value: sumSeconds }
  yield { metricName: `${name}_count`, labels: all, value: count }
}

function addObjectCounts({ Gauge }: Prom, registry: Registry, { kubernetesVersion, resourceCounts }: MetricSources): void {
  const registers = [registry]
  new Gauge({
    name: 'kubernetes_build_info',
    help: 'The Kubernetes version whose API is served.',
    labelNames: ['git_version'],
    registers,
  }).set({ git_version: kubernetesVersion }, 1)
  new Gauge({
    name: 'apiserver_storage_objects',
    help: 'Stored objects.',
    labelNames: ['resource'],
    registers,
    collect() {
      this.reset()
      for (const { group, resource, objects } of resourceCounts())
        this.set({ resource: group ? `${resource}.${group}` : resource }, objects)
    },
  })
  new Gauge({
    name: 'apiserver_resource_objects',
    help: 'Stored objects.',
    labelNames: ['group', 'resource'],
    registers,
    collect() {
      this.reset()
      for (const { group, resource, objects } of resourceCounts()) this.set({ group, resource }, objects)
    },
  })
}

function addServerStats({ Counter, Gauge }: Prom, registry: Registry, stats: () => ServerStats): void {
  const registers = [registry]
  const gauge = (name: string, help: string, read: (stats: ServerStats) => number) =>
    new Gauge({
      name: `oarlock_apiserver_${name}`,
      help,
      registers,
      collect() {
        this.set(read(stats()))
      },
    })
  const counter = (name: string, help: string, read: (stats: ServerStats) => number) =>
    new Counter({
      name: `oarlock_apiserver_${name}_total`,
      help,
      registers,
      collect() {
        this.reset()
        this.inc(read(stats()))
      },
    })
  gauge('object_bytes', 'Bytes of stored objects.', ({ objectBytes }) => objectBytes)
  gauge('watchers', 'Open watches.', ({ watchers }) => watchers)
  gauge('connections', 'Open connections.', ({ connections }) => connections)
  counter('writes', 'Writes acknowledged since the start.', ({ writes }) => writes)
  counter('commits', 'Commits to disk since the start; one commit carries many writes.', ({ commits }) => commits)
  counter('failed_writes', 'Writes that failed on disk since the start.', ({ failedWrites }) => failedWrites)
  gauge('queued_writes', 'Writes that wait for the disk.', ({ queuedWrites }) => queuedWrites)
  gauge('last_commit_seconds', 'Duration of the last commit.', ({ lastCommitMs }) => lastCommitMs / 1_000)
  gauge('inflight_requests', 'Requests that are being processed.', ({ inFlight }) => inFlight)
  gauge('waiting_requests', 'Requests that wait in the fair queue of their user.', ({ waitingRequests }) => waitingRequests)
  counter(
    'rejected_requests',
    'Requests rejected with 429 since the start because their user had too many.',
    ({ rejectedRequests }) => rejectedRequests,
  )
}

function labelsOf({ group, resource, scope, subresource, verb, version }: RequestLabels) {
  return { component: 'apiserver', group, resource, scope, subresource, verb, version }
}

const dryRun = ({ isDryRun }: RequestLabels) => (isDryRun ? 'All' : '')
