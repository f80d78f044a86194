import type { Registry } from 'prom-client'
import type { RequestMetrics } from './request-metrics.ts'
import type { ResourceCount, ServerStats } from './server-stats.ts'

export type MetricSources = {
  readonly kubernetesVersion: string
  readonly requests: RequestMetrics
  readonly resourceCounts: () => readonly ResourceCount[]
  readonly stats: () => ServerStats
}

type Prom = typeof import('prom-client')

/** A registry with the metrics of a server, except those of `request-metrics-text.ts`. Every value is read from `sources` at a scrape. */
export function serverRegistry(prom: Prom, sources: MetricSources): Registry {
  const registry = new prom.Registry()
  addRequestsInFlight(prom, registry, sources.requests)
  addObjectCounts(prom, registry, sources)
  addServerStats(prom, registry, sources.stats)
  return registry
}

function addRequestsInFlight({ Gauge }: Prom, registry: Registry, requests: RequestMetrics): void {
  new Gauge({
    name: 'apiserver_current_inflight_requests',
    help: 'Maximum number of requests in flight since the last scrape.',
    labelNames: ['request_kind'],
    registers: [registry],
    collect() {
      const { mutating, readOnly } = requests.takePeaks()
      this.set({ request_kind: 'mutating' }, mutating)
      this.set({ request_kind: 'readOnly' }, readOnly)
    },
  })
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
  gauge('history_bytes', 'Bytes of recent changes, which watches can resume from.', ({ historyBytes }) => historyBytes)
  gauge('watchers', 'Open watches.', ({ watchers }) => watchers)
  gauge('connections', 'Open connections.', ({ connections }) => connections)
  counter('writes', 'Writes acknowledged since the start.', ({ writes }) => writes)
  counter('commits', 'Commits to disk since the start; one commit carries many writes.', ({ commits }) => commits)
  counter('failed_writes', 'Writes that failed on disk since the start.', ({ failedWrites }) => failedWrites)
  gauge('queued_writes', 'Writes that wait for the disk.', ({ queuedWrites }) => queuedWrites)
  gauge('deferred_writes', 'Leases whose last renewal is not on disk yet.', ({ deferredWrites }) => deferredWrites)
  gauge('last_commit_seconds', 'Duration of the last commit.', ({ lastCommitMs }) => lastCommitMs / 1_000)
  gauge('inflight_requests', 'Requests that are being processed.', ({ inFlight }) => inFlight)
  gauge('waiting_requests', 'Requests that wait in the fair queue of their user.', ({ waitingRequests }) => waitingRequests)
  counter(
    'rejected_requests',
    'Requests rejected with 429 since the start because their user had too many.',
    ({ rejectedRequests }) => rejectedRequests,
  )
  // As in kube-apiserver.
  new Counter({
    name: 'apiserver_audit_event_total',
    help: 'Audit events since the start.',
    registers,
    collect() {
      this.reset()
      this.inc(stats().auditEvents)
    },
  })
  new Counter({
    name: 'apiserver_audit_error_total',
    help: 'Audit events that were lost since the start because they could not be written.',
    labelNames: ['plugin'],
    registers,
    collect() {
      this.reset()
      this.inc({ plugin: 'log' }, stats().lostAuditEvents)
    },
  })
}
