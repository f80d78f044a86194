import { isEnded, phaseOf, type Run, type Worker, type WorkerPool } from '../../api/index.ts'
import type { Informer } from '../../kubernetes/controller/index.ts'
import { objectKey } from '../../kubernetes/object/index.ts'
import type { Scaling } from '../protocol/index.ts'
import { type HistorySample, poolPrefix } from './history.ts'

type Cache<Body> = Pick<Informer<Body>, 'onChange'>

export type FleetMonitorSources = {
  readonly runs: Cache<Pick<Run, 'spec' | 'status'>>
  readonly workers: Cache<Pick<Worker, 'spec'>>
  readonly pools: Cache<Pick<WorkerPool, 'spec' | 'status'>>
}

/** Series of a pool beyond this many are left out. */
const maxGauges = 256

/** A number that goes up and down, and its highest value since the last sample. */
type Gauge = { now: number; highest: number }

/** What a Run, a worker or a pool adds to which gauges. */
type Shares = Readonly<Record<string, number>>

/** One that has not ended. */
type KnownRun = {
  readonly shares: Shares
  /** Undefined: it is not in the queue. */
  readonly queuedMs: number | undefined
  readonly worker: string | undefined
  readonly pool: string
}

/** Counts what a history keeps of a fleet, as its caches change: it needs memory for Runs that have not ended, workers and pools only. */
export class FleetMonitor {
  readonly #gauges = new Map<string, Gauge>(
    ['queueLength', 'activeRuns', 'workers', 'busyWorkers'].map(name => [name, { now: 0, highest: 0 }]),
  )
  readonly #runs = new Map<string, KnownRun>()
  /** Of each busy worker: how many active Runs name it. A short Run ends before its worker has reported that it is busy. */
  readonly #runsOfWorker = new Map<string, number>()
  readonly #workers = new Map<string, Shares>()
  readonly #pools = new Map<string, Shares>()
  #succeeded = 0
  #failed = 0

  /** @param onScaling is called when a pool wants another number of workers. */
  constructor({ runs, workers, pools }: FleetMonitorSources, onScaling: (scaling: Scaling) => void) {
    runs.onChange({ changed: ({ type, object }) => this.#runChanged(object as Run, type === 'deleted') })
    workers.onChange({
      changed: ({ type, object }) => {
        const { name } = object.metadata
        const shares = type === 'deleted' ? undefined : workerShares(object as Worker)
        this.#move(this.#workers.get(name), shares)
        if (shares) this.#workers.set(name, shares)
        else this.#workers.delete(name)
      },
    })
    pools.onChange({ changed: ({ type, object }) => this.#poolChanged(object as WorkerPool, type === 'deleted', onScaling) })
  }

  /** The highest values since the sample before, and the Runs that have ended since. */
  sample(nowMs: number): HistorySample {
    let oldestQueuedMs = 0
    for (const { queuedMs } of this.#runs.values()) if (queuedMs !== undefined) oldestQueuedMs = Math.max(oldestQueuedMs, nowMs - queuedMs)
    const sample: Record<string, number> = { oldestQueuedMs, runsSucceeded: this.#succeeded, runsFailed: this.#failed }
    this.#succeeded = this.#failed = 0
    for (const [name, gauge] of this.#gauges) {
      sample[name] = gauge.highest
      gauge.highest = gauge.now
    }
    return sample
  }

  #runChanged(run: Run, isDeleted: boolean): void {
    const key = objectKey(run)
    const known = this.#runs.get(key)
    if (!isDeleted && !isEnded(run)) {
      const isQueued = phaseOf(run) === 'Queued'
      const shares: Shares = isQueued ? { queueLength: 1, [`${poolPrefix(run.spec.pool)}queued`]: 1 } : { activeRuns: 1 }
      const queuedMs = isQueued ? Date.parse(run.spec.queuedSince ?? run.metadata.creationTimestamp) : undefined
      this.#move(known?.shares, shares)
      const { workerName: worker, pool } = run.spec
      if (known?.worker === undefined) this.#occupy(worker, pool, 1)
      this.#runs.set(key, { shares, queuedMs, worker, pool })
      return
    }
    // One that had ended before is not counted again.
    if (!known) return
    this.#move(known.shares, undefined)
    this.#occupy(known.worker, known.pool, -1)
    this.#runs.delete(key)
    if (isDeleted) return
    if (run.status?.phase === 'Succeeded') this.#succeeded++
    else if (run.status?.phase !== 'Canceled') this.#failed++
  }

  /** An active Run names the worker from now on (1), or no longer (-1). */
  #occupy(worker: string | undefined, pool: string, change: 1 | -1): void {
    if (worker === undefined) return
    const before = this.#runsOfWorker.get(worker) ?? 0
    const after = before + change
    if (after > 0) this.#runsOfWorker.set(worker, after)
    else this.#runsOfWorker.delete(worker)
    const busy: Shares = { busyWorkers: 1, [`${poolPrefix(pool)}busy`]: 1 }
    this.#move(before > 0 ? busy : undefined, after > 0 ? busy : undefined)
  }

  #poolChanged({ metadata: { name }, spec, status = {} }: WorkerPool, isDeleted: boolean, onScaling: (scaling: Scaling) => void): void {
    const before = this.#pools.get(name)
    const series = `${poolPrefix(name)}desired`
    const { desired = 0, queued = 0, busy = 0 } = status
    const { min = 0, max = 0 } = spec
    const now = { [series]: desired }
    this.#move(before, isDeleted ? undefined : now)
    if (isDeleted) {
      this.#pools.delete(name)
      for (const gauge of this.#gauges.keys()) if (gauge.startsWith(poolPrefix(name))) this.#gauges.delete(gauge)
      return
    }
    this.#pools.set(name, now)
    const from = before?.[series]
    if (from !== undefined && from !== desired) onScaling({ pool: name, atMs: Date.now(), from, to: desired, min, max, queued, busy })
  }

  #move(before: Shares | undefined, after: Shares | undefined): void {
    for (const name of new Set([...Object.keys(before ?? {}), ...Object.keys(after ?? {})])) {
      let gauge = this.#gauges.get(name)
      if (!gauge) {
        if (this.#gauges.size >= maxGauges) continue
        gauge = { now: 0, highest: 0 }
        this.#gauges.set(name, gauge)
      }
      gauge.now = Math.max(0, gauge.now + (after?.[name] ?? 0) - (before?.[name] ?? 0))
      gauge.highest = Math.max(gauge.highest, gauge.now)
    }
  }
}

const workerShares = ({ spec: { pool } }: Pick<Worker, 'spec'>): Shares => ({ workers: 1, [`${poolPrefix(pool)}workers`]: 1 })
