import type { Registry } from 'prom-client'
import { defaults } from '../../../api/index.ts'
import { type Log, type Manager, silentLog } from '../../../kubernetes/controller/index.ts'
import { addDisruptionController, PodPool, type PodWorkerOptions, type PoolDriver, RequestedPool } from '../pool/index.ts'
import type { QueueReport, QueueReportOptions } from '../status/index.ts'
import { Dispatcher } from './dispatcher.ts'
import type { ReadPendingOperations } from './execute-actions.ts'
import { dispatchGauges } from './gauges.ts'
import { noMetrics, registerMetrics } from './metrics.ts'
import type { SharedWorkersOptions } from './observe-objects.ts'

export type DispatchOptions = {
  /** Starts the workers of pools in mode Process. Default: requests them by Worker objects, which `oarlock pool` on any host starts. */
  poolDriver?: PoolDriver | undefined
  /** Environment and credentials of the Pods of pools in mode Pod. Without it, such pools start no workers and report the error. */
  podWorkers?: PodWorkerOptions
  /** Default 10,000. All workers must use the same value, because they stop themselves by it (invariant 2). */
  leaseDurationMs?: number
  /** Registry for the metrics of `metrics.ts`. Default: none are recorded. */
  registry?: Registry
  /** Maximum number of Runs active at the same time in all pools. Default: no limit. */
  maxRunning?: number
  /** For the status of Lost Runs. Default: they do not list what was interrupted. */
  readPendingOperations?: ReadPendingOperations | undefined
  /** Where the workers are, if several dispatchers share them. Default: on the manager's own server, for this dispatcher only. */
  shared?: SharedWorkersOptions | undefined
  /** Half-life of a tenant's recorded usage. Default: 900,000. */
  fairShareHalfLifeMs?: number
  log?: Log
  /** Wall clock in milliseconds. */
  nowMs?: () => number
  /** Monotonic clock in milliseconds. */
  monotonicMs?: () => number
  random?: () => number
}

/** Read access to the dispatcher. */
export type Dispatch = {
  /** The current queue; undefined if another process is the leader. */
  queue(options: QueueReportOptions): QueueReport | undefined
  /** Places a Run that is about to be created; undefined if it has to be queued, or another process is the leader. */
  placeNewRun: Dispatcher['placeNewRun']
}

/** Adds the controller that assigns Runs to Workers, starts the workers of pools and declares workers lost. Only the leader runs it. */
export function addDispatchController(manager: Manager, options: DispatchOptions): Dispatch {
  const {
    podWorkers,
    registry,
    readPendingOperations,
    shared,
    leaseDurationMs = defaults.leaseDurationMs,
    log: parent = silentLog,
  } = options
  const { nowMs = Date.now, monotonicMs = () => performance.now(), random = Math.random } = options
  const log = parent.child({ module: 'dispatch' })
  const poolOf = (name: string) => dispatcher.caches.pools.get(name)
  const podPool = podWorkers && new PodPool({ manager, log, poolOf, nowMs, workers: podWorkers })
  if (podWorkers) addDisruptionController(manager, { monotonicMs })
  const poolDriver = options.poolDriver ?? (shared?.sizesPools === false ? undefined : new RequestedPool({ manager, log, nowMs, shared }))
  const poolDrivers = { ...(poolDriver && { Process: poolDriver }), ...(podPool && { Pod: podPool }) }
  const claimsNames = { Process: poolDriver?.claimsNames, Pod: podPool?.claimsNames }
  const core = { claimsNames, maxRunning: options.maxRunning, halfLifeMs: options.fairShareHalfLifeMs, leaseDurationMs }
  const dispatcher: Dispatcher = new Dispatcher(
    {
      ...{ manager, poolDrivers, core, shared, readPendingOperations, log, nowMs, monotonicMs, random },
      registered: worker => podPool?.registered(worker) ?? worker,
    },
    core => (registry ? registerMetrics(registry, dispatchGauges(core)) : noMetrics),
  )
  manager.add(dispatcher)
  return { queue: options => dispatcher.report(options), placeNewRun: run => dispatcher.placeNewRun(run) }
}
