import type { Counter, Gauge, Histogram, Registry } from 'prom-client'
import type { WorkQueue, WorkQueueObserver } from '../util/work-queue.ts'
import type { ShardCounts } from './sharding/shards.ts'
import type { UnlabeledCount } from './sharding/unlabeled-objects.ts'

export type ReconcileResult = 'success' | 'error' | 'requeue_after'

/** What controllers report. Without a registry nothing is recorded. */
export type Metrics = {
  /** Creates the controller's series at 0 before anything happens: rate() needs a first sample. */
  controller(name: string, maxWorkers: number): void
  reconciled(controller: string, result: ReconcileResult, seconds: number, isTerminal: boolean): void
  /** A reconcile failed with a bug; it is also counted as an error. */
  panicked(controller: string): void
  timedOut(controller: string): void
  workers(controller: string, active: number): void
  queue(name: string): WorkQueueObserver
  /** Reads the queue's lengths at each scrape until the returned function is called. */
  watchQueue(name: string, queue: WorkQueue): () => void
  leader(name: string, isLeader: boolean): void
  /** Reads for how long the caches of a manager have failed, at each scrape until the returned function is called. */
  watchCaches(read: () => Iterable<CacheFailure>): () => void
  /** Reads the slowest keys of a sharded controller at each scrape until the returned function is called. */
  watchSlowest(controller: string, read: () => readonly { key: string; seconds: number }[]): () => void
  /** Reads the numbers of owned objects without a bucket label at each scrape until the returned function is called. */
  watchUnlabeled(controller: string, read: () => readonly UnlabeledCount[]): () => void
  /** Reads the state of this member of a ring at each scrape until the returned function is called. */
  watchShards(ring: string, read: () => ShardCounts): () => void
  request(request: { method: string; code: string; host: string }): void
}

/** A cache, and for how long its list+watch has failed; 0 while it is in sync. */
export type CacheFailure = { resource: string; cluster: string | undefined; seconds: number }

const noQueue: WorkQueueObserver = { added: () => undefined, waited: () => undefined, worked: () => undefined, retried: () => undefined }

export const noMetrics: Metrics = {
  controller: () => undefined,
  reconciled: () => undefined,
  panicked: () => undefined,
  timedOut: () => undefined,
  workers: () => undefined,
  queue: () => noQueue,
  watchQueue: () => () => undefined,
  leader: () => undefined,
  watchCaches: () => () => undefined,
  watchSlowest: () => () => undefined,
  watchUnlabeled: () => () => undefined,
  watchShards: () => () => undefined,
  request: () => undefined,
}

/** controller-runtime's buckets, so that its dashboards show the same steps. */
const reconcileBuckets = [
  0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9, 1, 1.25, 1.5, 1.75, 2, 2.5, 3, 3.5, 4, 4.5,
  5, 6, 7, 8, 9, 10, 15, 20, 25, 30, 40, 50, 60,
]
const queueBuckets = [1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1, 10, 100, 1_000]

/** Beyond this many priorities the rest share one series, named as in controller-runtime. */
const maxPriorities = 25

const perRegistry = new WeakMap<Registry, Promise<Metrics>>()

/** Metrics under controller-runtime's names on `registry`; several managers may share one. */
export function metricsOn(registry: Registry): Promise<Metrics> {
  let metrics = perRegistry.get(registry)
  if (!metrics) {
    metrics = build(registry)
    perRegistry.set(registry, metrics)
  }
  return metrics
}

async function build(registry: Registry): Promise<Metrics> {
  // Loaded only with a registry, whose owner has loaded it already: it would cost everyone else 19 MB.
  const prom = await import('prom-client')
  const registers = [registry]
  const queues = new Map<string, Set<WorkQueue>>()
  const counter = <T extends string>(name: string, help: string, labelNames: T[]): Counter<T> =>
    new prom.Counter({ name, help, labelNames, registers })
  const gauge = <T extends string>(name: string, help: string, labelNames: T[]): Gauge<T> =>
    new prom.Gauge({ name, help, labelNames, registers })
  const histogram = <T extends string>(name: string, help: string, labelNames: T[], buckets: number[]): Histogram<T> =>
    new prom.Histogram({ name, help, labelNames, buckets, registers })

  const total = counter('controller_runtime_reconcile_total', 'Total number of reconciliations per controller', ['controller', 'result'])
  const errors = counter('controller_runtime_reconcile_errors_total', 'Total number of reconciliation errors per controller', [
    'controller',
  ])
  const terminal = counter(
    'controller_runtime_terminal_reconcile_errors_total',
    'Total number of terminal reconciliation errors per controller',
    ['controller'],
  )
  const panics = counter('controller_runtime_reconcile_panics_total', 'Total number of reconciliation panics per controller', [
    'controller',
  ])
  const timeouts = counter('controller_runtime_reconcile_timeouts_total', 'Total number of reconciliation timeouts per controller', [
    'controller',
  ])
  const time = histogram(
    'controller_runtime_reconcile_time_seconds',
    'Length of time per reconciliation per controller',
    ['controller'],
    reconcileBuckets,
  )
  const maxWorkers = gauge('controller_runtime_max_concurrent_reconciles', 'Maximum number of concurrent reconciles per controller', [
    'controller',
  ])
  const activeWorkers = gauge('controller_runtime_active_workers', 'Number of currently used workers per controller', ['controller'])
  const adds = counter('workqueue_adds_total', 'Total number of adds handled by workqueue', ['name', 'controller'])
  const retries = counter(
    'workqueue_retries_total',
    'Total number of items added to the workqueue with a non-zero delay (backoff, requeueAfterMs, delayMs)',
    ['name', 'controller'],
  )
  const waited = histogram(
    'workqueue_queue_duration_seconds',
    'How long in seconds an item stays in workqueue before being requested',
    ['name', 'controller'],
    queueBuckets,
  )
  const worked = histogram(
    'workqueue_work_duration_seconds',
    'How long in seconds processing an item from workqueue takes',
    ['name', 'controller'],
    queueBuckets,
  )
  const master = gauge(
    'leader_election_master_status',
    'Gauge of if the reporting system is master of the relevant lease, 0 indicates backup, 1 indicates master',
    ['name'],
  )
  const requests = counter('rest_client_requests_total', 'Number of HTTP requests, partitioned by status code, method, and host', [
    'code',
    'host',
    'method',
  ])
  const queueGauge = (
    metric: string,
    help: string,
    read: (gauge: Gauge, name: string, live: Set<WorkQueue>) => void,
    more: string[] = [],
  ) =>
    new prom.Gauge({
      name: metric,
      help,
      labelNames: ['name', 'controller', ...more],
      registers,
      collect() {
        this.reset()
        for (const [name, live] of queues) read(this, name, live)
      },
    })
  queueGauge(
    'workqueue_depth',
    'Current depth of workqueue by workqueue and priority',
    (gauge, name, live) => {
      const depths = new Map([['0', 0]])
      for (const queue of live) {
        for (const { priority, length } of queue.byPriority()) {
          const label = depths.size < maxPriorities || depths.has(String(priority)) ? String(priority) : 'exceeded_cardinality_limit'
          depths.set(label, (depths.get(label) ?? 0) + length)
        }
      }
      for (const [priority, depth] of depths) gauge.set({ name, controller: name, priority }, depth)
    },
    ['priority'],
  )
  queueGauge(
    'workqueue_unfinished_work_seconds',
    'How many seconds of work is in progress and not yet observed by work_duration. Grows by one per second for each stuck reconcile.',
    (gauge, name, live) =>
      gauge.set(
        { name, controller: name },
        [...live].reduce((sum, queue) => sum + queue.runningSeconds().sum, 0),
      ),
  )
  queueGauge(
    'workqueue_longest_running_processor_seconds',
    'How many seconds the longest running reconcile has been running.',
    (gauge, name, live) => gauge.set({ name, controller: name }, Math.max(0, ...[...live].map(queue => queue.runningSeconds().longest))),
  )

  const caches = new Set<() => Iterable<CacheFailure>>()
  new prom.Gauge({
    name: 'controller_cache_failing_seconds',
    help: 'For how long list and watch of a cache have failed, 0 while it is in sync; the longest of the caches of a resource',
    labelNames: ['resource', 'cluster'],
    registers,
    collect() {
      this.reset()
      const longest = new Map<string, CacheFailure>()
      for (const read of caches) {
        for (const cache of read()) {
          const key = `${cache.cluster ?? ''}|${cache.resource}`
          if (cache.seconds >= (longest.get(key)?.seconds ?? 0)) longest.set(key, cache)
        }
      }
      for (const { resource, cluster = '', seconds } of longest.values()) this.set({ resource, cluster }, seconds)
    },
  })

  const slowest = new Map<string, () => readonly { key: string; seconds: number }[]>()
  const unlabeled = new Map<string, () => readonly UnlabeledCount[]>()
  const rings = new Map<string, () => ShardCounts>()
  // Created with the first sharded manager, so that others have no such series.
  const createShardGauges = () => {
    if (registry.getSingleMetric('controller_shards_ring_version')) return
    const shardGauge = (
      metric: string,
      help: string,
      read: (gauge: Gauge, ring: string, counts: ShardCounts) => void,
      more: string[] = [],
    ) =>
      new prom.Gauge({
        name: metric,
        help,
        labelNames: ['ring', ...more],
        registers,
        collect() {
          this.reset()
          for (const [ring, counts] of rings) read(this, ring, counts())
        },
      })
    shardGauge('controller_shards_ring_version', 'Version of the ring as this member sees it', (each, ring, counts) =>
      each.set({ ring }, counts.ringVersion),
    )
    shardGauge('controller_shards_members', 'Members of the ring as this member sees it', (each, ring, counts) =>
      each.set({ ring }, counts.members),
    )
    shardGauge('controller_shards_slot', 'Slot of this member, -1 while it waits for one', (each, ring, counts) =>
      each.set({ ring }, counts.slot ?? -1),
    )
    shardGauge(
      'controller_shards_buckets',
      'Buckets of this member: it works on them, prepares to, or must give them up when running reconciles have ended',
      (each, ring, counts) => {
        each.set({ ring, state: 'active' }, counts.active)
        each.set({ ring, state: 'gaining' }, counts.gaining)
        each.set({ ring, state: 'releasing' }, counts.releasing)
      },
      ['state'],
    )
    new prom.Counter({
      name: 'controller_shards_bucket_moves_total',
      help: 'Buckets that this member gained and lost since it started',
      labelNames: ['ring', 'direction'],
      registers,
      collect() {
        this.reset()
        for (const [ring, counts] of rings) {
          const { gained, lost } = counts()
          this.inc({ ring, direction: 'gained' }, gained)
          this.inc({ ring, direction: 'lost' }, lost)
        }
      },
    })
    shardGauge('controller_shards_watches', 'Open watches of sharded caches', (each, ring, counts) => each.set({ ring }, counts.watches))
    new prom.Gauge({
      name: 'controller_shards_unlabeled_objects',
      help: 'Owned objects without a bucket label, which no member sees, in the member that counts them',
      labelNames: ['controller', 'resource'],
      registers,
      collect() {
        this.reset()
        for (const [controller, read] of unlabeled) for (const { resource, count } of read()) this.set({ controller, resource }, count)
      },
    })
    new prom.Gauge({
      name: 'controller_shards_slowest_reconcile_seconds',
      help: 'The slowest reconciles of the last ten minutes, at most five keys per controller',
      labelNames: ['controller', 'key'],
      registers,
      collect() {
        this.reset()
        for (const [controller, read] of slowest) for (const { key, seconds } of read()) this.set({ controller, key }, seconds)
      },
    })
  }

  return {
    watchCaches(read) {
      caches.add(read)
      return () => caches.delete(read)
    },
    watchSlowest(controller, read) {
      slowest.set(controller, read)
      return () => slowest.delete(controller)
    },
    watchUnlabeled(controller, read) {
      unlabeled.set(controller, read)
      return () => unlabeled.delete(controller)
    },
    watchShards(ring, read) {
      createShardGauges()
      rings.set(ring, read)
      return () => rings.delete(ring)
    },
    controller(controller, maxCount) {
      for (const result of ['success', 'error', 'requeue_after']) total.inc({ controller, result }, 0)
      for (const each of [errors, terminal, panics, timeouts]) each.inc({ controller }, 0)
      maxWorkers.set({ controller }, maxCount)
      activeWorkers.set({ controller }, 0)
    },
    panicked: controller => panics.inc({ controller }),
    timedOut: controller => timeouts.inc({ controller }),
    reconciled(controller, result, seconds, isTerminal) {
      total.inc({ controller, result })
      time.observe({ controller }, seconds)
      if (result === 'error') errors.inc({ controller })
      if (isTerminal) terminal.inc({ controller })
    },
    workers: (controller, active) => activeWorkers.set({ controller }, active),
    queue(name) {
      const labels = { name, controller: name }
      adds.inc(labels, 0)
      retries.inc(labels, 0)
      return {
        added: () => adds.inc(labels),
        waited: seconds => waited.observe(labels, seconds),
        worked: seconds => worked.observe(labels, seconds),
        retried: () => retries.inc(labels),
      }
    },
    watchQueue(name, queue) {
      const live = queues.get(name) ?? new Set()
      queues.set(name, live.add(queue))
      return () => live.delete(queue)
    },
    leader: (name, isLeader) => master.set({ name }, isLeader ? 1 : 0),
    request: labels => requests.inc(labels),
  }
}
