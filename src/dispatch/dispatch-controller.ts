import type { Registry } from 'prom-client'
import { defaults } from '../api/index.ts'
import { type Log, type Manager, silentLog } from '../controller/index.ts'
import { Dispatcher } from './dispatcher.ts'
import { metricsOn, noMetrics } from './metrics.ts'
import type { PoolDriver } from './pool/index.ts'
import type { QueueReport, QueueReportOptions } from './queue/index.ts'

export type DispatchOptions = {
  poolDriver: PoolDriver
  /** Default 10,000. All workers must use the same: they stop themselves in time by it (invariant 2). */
  leaseDurationMs?: number
  /** Where `oarlock_runs_queued`, `oarlock_runs_total`, `oarlock_run_queue_seconds` and `oarlock_workers` go; default nowhere. */
  registry?: Registry
  /** Never more Runs at once, over all pools. Default: no limit. */
  maxRunning?: number
  /** After so long half of what a tenant used is forgotten. Default: 900,000. */
  fairShareHalfLifeMs?: number
  log?: Log
  /** Wall clock in milliseconds. */
  nowMs?: () => number
  /** Monotonic clock in milliseconds. */
  monotonicMs?: () => number
  random?: () => number
}

/** What dispatch can be asked. */
export type Dispatch = {
  /** The queue as it is now; empty where another process leads. */
  queue(options: QueueReportOptions): QueueReport
}

/** Adds what gives Runs to Workers, starts workers of pools and declares them dead. Only the leader runs it. */
export function addDispatchController(manager: Manager, options: DispatchOptions): Dispatch {
  const { poolDriver, registry, leaseDurationMs = defaults.leaseDurationMs, log = silentLog } = options
  const queue = { maxRunning: options.maxRunning, halfLifeMs: options.fairShareHalfLifeMs }
  const { nowMs = Date.now, monotonicMs = () => performance.now(), random = Math.random } = options
  const parts = { manager, poolDriver, leaseDurationMs, queue, log: log.child({ room: 'dispatch' }), nowMs, monotonicMs, random }
  const dispatcher = new Dispatcher(parts, self => {
    if (!registry) return noMetrics
    return metricsOn(registry, { queued: () => self.queuedByPool(), workers: () => countWorkers(self) })
  })
  manager.add(dispatcher)
  return { queue: options => dispatcher.report(options) }
}

function countWorkers({ caches }: Dispatcher): { pool: string; phase: string; count: number }[] {
  const counts = new Map<string, { pool: string; phase: string; count: number }>()
  for (const { spec, status } of caches.workers.list()) {
    const phase = status?.phase ?? 'Starting'
    const entry = counts.get(`${spec.pool}/${phase}`)
    if (entry) entry.count++
    else counts.set(`${spec.pool}/${phase}`, { pool: spec.pool, phase, count: 1 })
  }
  return [...counts.values()]
}
