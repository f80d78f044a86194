import type { Registry } from 'prom-client'
import { defaults } from '../../api/index.ts'
import { type Log, type Manager, silentLog } from '../../kubernetes/controller/index.ts'
import { Dispatcher } from './dispatcher.ts'
import { dispatchGauges } from './gauges.ts'
import { noMetrics, registerMetrics } from './metrics.ts'
import { PodPool, type PodWorkerOptions, type PoolDriver } from './pool/index.ts'
import type { QueueReport, QueueReportOptions } from './queue/index.ts'

export type DispatchOptions = {
  /** Starts the workers of pools of mode Process. */
  poolDriver: PoolDriver
  /** What the Pods of pools of mode Pod are told; without it such a pool starts nothing and says so. */
  podWorkers?: PodWorkerOptions
  /** Default 10,000. All workers must use the same: they stop themselves in time by it (invariant 2). */
  leaseDurationMs?: number
  /** Where the metrics of `metrics.ts` go; default nowhere. */
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
  const { poolDriver, podWorkers, registry, leaseDurationMs = defaults.leaseDurationMs, log: parent = silentLog } = options
  const queue = { maxRunning: options.maxRunning, halfLifeMs: options.fairShareHalfLifeMs }
  const { nowMs = Date.now, monotonicMs = () => performance.now(), random = Math.random } = options
  const log = parent.child({ room: 'dispatch' })
  const poolOf = (name: string) => dispatcher.caches.pools.get(name)
  const podPool = podWorkers && new PodPool({ manager, log, poolOf, nowMs, workers: podWorkers })
  const poolDrivers = { Process: poolDriver, ...(podPool && { Pod: podPool }) }
  const dependencies = { manager, poolDrivers, leaseDurationMs, queue, log, nowMs, monotonicMs, random }
  const dispatcher: Dispatcher = new Dispatcher(dependencies, self =>
    registry ? registerMetrics(registry, dispatchGauges(self)) : noMetrics,
  )
  manager.add(dispatcher)
  return { queue: options => dispatcher.report(options) }
}
