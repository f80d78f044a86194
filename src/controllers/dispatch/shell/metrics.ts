import { Counter, Gauge, Histogram, type Registry } from 'prom-client'
import { isRejected, type Run } from '../../../api/index.ts'
import { boundedLabelValues } from './bounded-label-values.ts'

/** Prometheus metrics of dispatch. Every value is exact; none is sampled. */
export type DispatchMetrics = {
  /** A Run has ended with the result in its status. */
  runEnded(run: Run, tenant: string): void
  runAssigned(pool: string, queuedSeconds: number): void
  /** A decision to start or to drain workers, with its reason. */
  scaled(pool: string, direction: 'up' | 'down', reason: string, count: number): void
  startFailed(pool: string, reason: string): void
}

export type DispatchGauges = {
  /** Queued Runs by pool. */
  queued(): ReadonlyMap<string, number>
  /** Active Runs by pool and phase. */
  active(): readonly { readonly pool: string; readonly phase: string; readonly count: number }[]
  /** Workers by pool and phase. */
  workers(): readonly { readonly pool: string; readonly phase: string; readonly count: number }[]
  /** Slots of schedulable workers by pool. */
  slots(): readonly { readonly pool: string; readonly used: number; readonly free: number }[]
  /** Desired and starting workers of each pool. */
  pools(): readonly { readonly pool: string; readonly desired: number; readonly starting: number }[]
}

export const noMetrics: DispatchMetrics = {
  runEnded: () => undefined,
  runAssigned: () => undefined,
  scaled: () => undefined,
  startFailed: () => undefined,
}

/** Limit for label values that users choose, such as pool names: further values are counted as `other` (invariant 10). */
const maxLabelValues = 200
/** Lower, because each tenant is combined with every pool, type and phase. */
const maxTenants = 50

/** Workers report them. */
const maxManagers = 20

type RunDependencies = NonNullable<NonNullable<Run['status']>['dependencies']>
type RunProviders = NonNullable<NonNullable<Run['status']>['providers']>

/** Registers the metrics of dispatch with `registry`. Gauges are computed at each scrape. */
export function registerMetrics(registry: Registry, gauges: DispatchGauges): DispatchMetrics {
  const registers = [registry]
  const boundedPool = boundedLabelValues(maxLabelValues)
  const boundedTenant = boundedLabelValues(maxTenants)
  const gauge = <Label extends string>(name: string, help: string, labelNames: Label[], fill: (self: Gauge<Label>) => void) => {
    const made: Gauge<Label> = new Gauge({
      name,
      help,
      labelNames,
      registers,
      collect() {
        made.reset()
        fill(made)
      },
    })
  }
  gauge('oarlock_runs_queued', 'Queued Runs.', ['pool'], self => {
    for (const [pool, count] of gauges.queued()) self.inc({ pool: boundedPool(pool) }, count)
  })
  gauge('oarlock_runs_active', 'Runs that are assigned to a worker and have not ended.', ['pool', 'phase'], self => {
    for (const { pool, phase, count } of gauges.active()) self.inc({ pool: boundedPool(pool), phase }, count)
  })
  gauge('oarlock_workers', 'Registered workers.', ['pool', 'phase'], self => {
    for (const { pool, phase, count } of gauges.workers()) self.inc({ pool: boundedPool(pool), phase }, count)
  })
  gauge('oarlock_worker_slots', 'Slots of schedulable workers.', ['pool', 'state'], self => {
    for (const { pool, used, free } of gauges.slots()) {
      self.inc({ pool: boundedPool(pool), state: 'used' }, used)
      self.inc({ pool: boundedPool(pool), state: 'free' }, free)
    }
  })
  gauge('oarlock_pool_desired_workers', 'Desired workers: clamp(busy + ceil(queued / slots), min, max).', ['pool'], self => {
    for (const { pool, desired } of gauges.pools()) self.inc({ pool: boundedPool(pool) }, desired)
  })
  gauge('oarlock_pool_starting_workers', 'Workers that were started and have not registered yet.', ['pool'], self => {
    for (const { pool, starting } of gauges.pools()) self.inc({ pool: boundedPool(pool) }, starting)
  })
  const counter = <Label extends string>(name: string, help: string, labelNames: Label[]) =>
    new Counter({ name, help, labelNames, registers })
  const total = counter('oarlock_runs_total', 'Runs that ended.', ['pool', 'tenant', 'type', 'phase'])
  const lost = counter('oarlock_runs_lost_total', 'Runs whose worker was lost.', ['pool'])
  const conflicts = counter(
    'oarlock_dispatch_conflicts_total',
    'Runs that their worker rejected, because another dispatcher had used its last slot.',
    ['pool'],
  )
  const scaled = counter('oarlock_pool_scale_total', 'Workers started (up) and drained (down), by reason.', ['pool', 'direction', 'reason'])
  const failed = counter('oarlock_pool_start_failures_total', 'Workers that failed to start, by reason.', ['pool', 'reason'])
  const seconds = new Histogram({
    name: 'oarlock_run_queue_seconds',
    help: 'Time from the creation of a Run until its assignment to a worker.',
    labelNames: ['pool'],
    buckets: [0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1_800, 7_200],
    registers,
  })
  const cpu = new Histogram({
    name: 'oarlock_run_cpu_seconds',
    help: 'User and system CPU time of the engine of a Run and its child processes.',
    labelNames: ['pool'],
    buckets: [0.1, 0.5, 1, 5, 15, 60, 300, 1_800],
    registers,
  })
  const mebibyte = 1_024 * 1_024
  const memory = new Histogram({
    name: 'oarlock_run_peak_memory_bytes',
    help: 'Peak memory of the engine of a Run and its child processes.',
    labelNames: ['pool'],
    buckets: [32, 64, 128, 256, 512, 1_024, 2_048, 4_096, 8_192].map(count => count * mebibyte),
    registers,
  })
  const boundedManager = boundedLabelValues(maxManagers)
  const dependencies = counter(
    'oarlock_run_dependencies_total',
    'Runs that got packages of a package manager: cached, after waiting for another Run, or installed.',
    ['pool', 'manager', 'source'],
  )
  const saved = counter('oarlock_dependency_seconds_saved_total', 'Seconds of installs that Runs did not repeat.', ['pool'])
  const preparation = counter('oarlock_dependency_seconds_total', 'Seconds until Runs had their packages, by source.', ['pool', 'source'])
  const installedBytes = counter('oarlock_dependency_installed_bytes_total', 'Bytes on disk of the packages that Runs installed.', ['pool'])
  const recordDependencies = (pool: string, { manager, source, seconds, installSeconds, bytes }: RunDependencies) => {
    dependencies.inc({ pool, manager: boundedManager(manager), source })
    preparation.inc({ pool, source }, seconds)
    if (source === 'Installed') installedBytes.inc({ pool }, bytes)
    else saved.inc({ pool }, Math.max(0, installSeconds - seconds))
  }
  const providers = counter(
    'oarlock_run_providers_total',
    'Providers and plugins that Runs got: cached, after waiting for another Run, or downloaded.',
    ['pool', 'engine', 'source'],
  )
  const providerSeconds = counter('oarlock_provider_seconds_total', 'Seconds that Runs spent on the provider cache.', ['pool'])
  const providerSaved = counter('oarlock_provider_seconds_saved_total', 'Seconds of downloads of providers that Runs did not repeat.', [
    'pool',
  ])
  const downloadedBytes = counter('oarlock_provider_downloaded_bytes_total', 'Bytes of the providers that Runs downloaded.', ['pool'])
  const recordProviders = (pool: string, engine: string, used: RunProviders) => {
    const counts = { Cached: used.cached, Waited: used.waited, Downloaded: used.downloaded }
    for (const [source, count] of Object.entries(counts)) if (count > 0) providers.inc({ pool, engine, source }, count)
    providerSeconds.inc({ pool }, used.seconds)
    providerSaved.inc({ pool }, Math.max(0, used.downloadSeconds - used.seconds))
    downloadedBytes.inc({ pool }, used.downloadedBytes)
  }
  return {
    runEnded({ spec, status }, tenant) {
      const pool = boundedPool(spec.pool)
      const phase = status?.phase ?? 'Queued'
      total.inc({ pool, tenant: boundedTenant(tenant), type: spec.type, phase })
      if (status?.usage) {
        cpu.observe({ pool }, status.usage.cpuSeconds)
        // Otherwise it was not measured.
        if (status.usage.peakMemoryBytes > 0) memory.observe({ pool }, status.usage.peakMemoryBytes)
      }
      if (status?.dependencies) recordDependencies(pool, status.dependencies)
      if (status?.providers) recordProviders(pool, spec.stack.engine, status.providers)
      if (phase === 'Lost') (isRejected({ status }) ? conflicts : lost).inc({ pool })
    },
    runAssigned: (pool, queuedSeconds) => seconds.observe({ pool: boundedPool(pool) }, queuedSeconds),
    scaled: (pool, direction, reason, count) => scaled.inc({ pool: boundedPool(pool), direction, reason }, count),
    startFailed: (pool, reason) => failed.inc({ pool: boundedPool(pool), reason }),
  }
}
