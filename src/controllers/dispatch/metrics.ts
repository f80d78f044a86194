import { Counter, Gauge, Histogram, type Registry } from 'prom-client'
import type { Run } from '../../api/index.ts'

/** What dispatch tells Prometheus; every number comes from the queue itself, never from a sample of it. */
export type DispatchMetrics = {
  /** A Run has ended as its status says. */
  runEnded(run: Run, tenant: string): void
  runAssigned(run: Run, queuedSeconds: number): void
  /** A decision to start workers, or to let go of some, and why. */
  scaled(pool: string, direction: 'up' | 'down', reason: string, count: number): void
  startFailed(pool: string, reason: string): void
}

export type DispatchGauges = {
  /** Runs that wait, by pool. */
  queued(): ReadonlyMap<string, number>
  /** Runs under way, by pool and phase. */
  active(): readonly { readonly pool: string; readonly phase: string; readonly count: number }[]
  /** Workers by pool and phase. */
  workers(): readonly { readonly pool: string; readonly phase: string; readonly count: number }[]
  /** Slots of workers that take Runs, by pool. */
  slots(): readonly { readonly pool: string; readonly used: number; readonly free: number }[]
  /** What each pool should have, and how many workers it is starting. */
  pools(): readonly { readonly pool: string; readonly desired: number; readonly starting: number }[]
}

export const noMetrics: DispatchMetrics = {
  runEnded: () => undefined,
  runAssigned: () => undefined,
  scaled: () => undefined,
  startFailed: () => undefined,
}

/** Names that users choose, such as those of pools: so many are told apart, later ones are counted as `other` (invariant 10). */
const maxLabelValues = 200
/** Each of these comes with every pool, type and phase. */
const maxTenants = 50

/** Registers the metrics of dispatch on `registry`; the gauges are read when somebody scrapes. */
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
  gauge('oarlock_runs_queued', 'Runs that wait for a worker.', ['pool'], self => {
    for (const [pool, count] of gauges.queued()) self.inc({ pool: boundedPool(pool) }, count)
  })
  gauge('oarlock_runs_active', 'Runs that have a worker and have not ended.', ['pool', 'phase'], self => {
    for (const { pool, phase, count } of gauges.active()) self.inc({ pool: boundedPool(pool), phase }, count)
  })
  gauge('oarlock_workers', 'Registered workers.', ['pool', 'phase'], self => {
    for (const { pool, phase, count } of gauges.workers()) self.inc({ pool: boundedPool(pool), phase }, count)
  })
  gauge('oarlock_worker_slots', 'Slots of workers that take Runs.', ['pool', 'state'], self => {
    for (const { pool, used, free } of gauges.slots()) {
      self.inc({ pool: boundedPool(pool), state: 'used' }, used)
      self.inc({ pool: boundedPool(pool), state: 'free' }, free)
    }
  })
  gauge('oarlock_pool_desired_workers', 'clamp(busy + ceil(queued / slots), min, max).', ['pool'], self => {
    for (const { pool, desired } of gauges.pools()) self.inc({ pool: boundedPool(pool) }, desired)
  })
  gauge('oarlock_pool_starting_workers', 'Workers that were started and have not registered.', ['pool'], self => {
    for (const { pool, starting } of gauges.pools()) self.inc({ pool: boundedPool(pool) }, starting)
  })
  const counter = <Label extends string>(name: string, help: string, labelNames: Label[]) =>
    new Counter({ name, help, labelNames, registers })
  const total = counter('oarlock_runs_total', 'Runs that ended.', ['pool', 'tenant', 'type', 'phase'])
  const lost = counter('oarlock_runs_lost_total', 'Runs whose worker died.', ['pool'])
  const scaled = counter('oarlock_pool_scale_total', 'Workers started (up) and let go (down), by reason.', ['pool', 'direction', 'reason'])
  const failed = counter('oarlock_pool_start_failures_total', 'Workers that did not come up, by reason.', ['pool', 'reason'])
  const seconds = new Histogram({
    name: 'oarlock_run_queue_seconds',
    help: 'From the creation of a Run until it had a worker.',
    labelNames: ['pool'],
    buckets: [0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1_800, 7_200],
    registers,
  })
  const cpu = new Histogram({
    name: 'oarlock_run_cpu_seconds',
    help: 'User and system time of the engine of a Run and of all it started.',
    labelNames: ['pool'],
    buckets: [0.1, 0.5, 1, 5, 15, 60, 300, 1_800],
    registers,
  })
  const mebibyte = 1_024 * 1_024
  const memory = new Histogram({
    name: 'oarlock_run_peak_memory_bytes',
    help: 'The most memory that the engine of a Run and all it started held at once.',
    labelNames: ['pool'],
    buckets: [32, 64, 128, 256, 512, 1_024, 2_048, 4_096, 8_192].map(count => count * mebibyte),
    registers,
  })
  return {
    runEnded({ spec, status }, tenant) {
      const pool = boundedPool(spec.pool)
      const phase = status?.phase ?? 'Queued'
      total.inc({ pool, tenant: boundedTenant(tenant), type: spec.type, phase })
      if (status?.usage) {
        cpu.observe({ pool }, status.usage.cpuSeconds)
        memory.observe({ pool }, status.usage.peakMemoryBytes)
      }
      if (phase === 'Lost') lost.inc({ pool })
    },
    runAssigned: ({ spec }, queuedSeconds) => seconds.observe({ pool: boundedPool(spec.pool) }, queuedSeconds),
    scaled: (pool, direction, reason, count) => scaled.inc({ pool: boundedPool(pool), direction, reason }, count),
    startFailed: (pool, reason) => failed.inc({ pool: boundedPool(pool), reason }),
  }
}

/** Passes on the first `max` different values, and calls all others `other`. */
export function boundedLabelValues(max: number): (value: string) => string {
  const known = new Set<string>()
  return value => {
    if (known.has(value)) return value
    if (known.size >= max) return 'other'
    known.add(value)
    return value
  }
}
