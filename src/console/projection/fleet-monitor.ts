import { isEnded, phaseOf, type Run, type RunPhase, type Worker, type WorkerPool } from '../../api/index.ts'
import type { Informer } from '../../kubernetes/controller/index.ts'
import { objectKey } from '../../kubernetes/object/index.ts'
import type { Scaling } from '../protocol/index.ts'
import { type HistorySample, poolPrefix } from './history.ts'

type Cache<Body> = Pick<Informer<Body>, 'onChange'>

export type FleetMonitorSources = {
  readonly runs: Cache<Pick<Run, 'spec' | 'status'>>
  readonly workers: Cache<Pick<Worker, 'spec' | 'status'>>
  readonly pools: Cache<Pick<WorkerPool, 'spec' | 'status'>>
}

/** More pools have no series of their own. */
const maxPools = 50

type PoolNumbers = Pick<Scaling, 'min' | 'max' | 'queued' | 'busy'> & { readonly desired: number; readonly workers: number }

/** Counts what a history keeps of a fleet, as its caches change: it needs memory for Runs that have not ended, workers and pools only. */
export class FleetMonitor {
  readonly #active = new Map<string, { readonly phase: RunPhase; readonly createdMs: number }>()
  readonly #busy = new Map<string, boolean>()
  readonly #pools = new Map<string, PoolNumbers>()
  #succeeded = 0
  #failed = 0

  /** @param onScaling is called when a pool wants another number of workers. */
  constructor({ runs, workers, pools }: FleetMonitorSources, onScaling: (scaling: Scaling) => void) {
    runs.onChange({ changed: ({ type, object }) => this.#runChanged(object as Run, type === 'deleted') })
    workers.onChange({
      changed: ({ type, object }) => {
        const { metadata, status } = object as Worker
        if (type === 'deleted') this.#busy.delete(metadata.name)
        else this.#busy.set(metadata.name, status?.phase === 'Busy')
      },
    })
    pools.onChange({
      changed: ({ type, object }) => {
        const { name } = object.metadata
        const before = this.#pools.get(name)
        if (type === 'deleted') return void this.#pools.delete(name)
        const now = numbersOf(object as WorkerPool)
        if (!before && this.#pools.size >= maxPools) return
        this.#pools.set(name, now)
        if (!before || before.desired === now.desired) return
        const { min, max, queued, busy } = now
        onScaling({ pool: name, atMs: Date.now(), from: before.desired, to: now.desired, min, max, queued, busy })
      },
    })
  }

  /** The numbers now, and the Runs that have ended since the sample before. */
  sample(nowMs: number): HistorySample {
    const sample: Record<string, number> = { queueLength: 0, oldestQueuedMs: 0, activeRuns: 0 }
    for (const { phase, createdMs } of this.#active.values()) {
      if (phase !== 'Queued') sample.activeRuns = (sample.activeRuns ?? 0) + 1
      else {
        sample.queueLength = (sample.queueLength ?? 0) + 1
        sample.oldestQueuedMs = Math.max(sample.oldestQueuedMs ?? 0, nowMs - createdMs)
      }
    }
    let busyWorkers = 0
    for (const isBusy of this.#busy.values()) if (isBusy) busyWorkers++
    Object.assign(sample, { workers: this.#busy.size, busyWorkers, runsSucceeded: this.#succeeded, runsFailed: this.#failed })
    for (const [name, { desired, workers, busy, queued }] of this.#pools)
      for (const [series, value] of Object.entries({ desired, workers, busy, queued })) sample[`${poolPrefix(name)}${series}`] = value
    this.#succeeded = this.#failed = 0
    return sample
  }

  #runChanged(run: Run, isDeleted: boolean): void {
    const key = objectKey(run)
    if (!isDeleted && !isEnded(run)) {
      const createdMs = Date.parse(run.spec.queuedSince ?? run.metadata.creationTimestamp)
      this.#active.set(key, { phase: phaseOf(run), createdMs })
      return
    }
    // One that had ended before is not counted again.
    if (!this.#active.delete(key) || isDeleted) return
    if (run.status?.phase === 'Succeeded') this.#succeeded++
    else if (run.status?.phase !== 'Canceled') this.#failed++
  }
}

function numbersOf({ spec: { min = 0, max = 0 }, status = {} }: WorkerPool): PoolNumbers {
  const { desired = 0, workers = 0, busy = 0, queued = 0 } = status
  return { min, max, desired, workers, busy, queued }
}
