import type { Worker, WorkerPool } from '../../api/index.ts'
import { canTakeRuns, isSpent, loadOf, type WorkerLoads } from '../worker-load.ts'
import type { StartState } from './start-state.ts'

/** Runs of a pool that have no Worker after placing. */
export type PoolDemand = {
  /** All that wait. */
  readonly queued: number
  /** Those of them that one more worker of this pool would let start: what waits for a limit is not counted. */
  readonly wanted: number
}

export type PoolsInput = {
  readonly demand: ReadonlyMap<string, PoolDemand>
  readonly workers: readonly Worker[]
  /** With what was just placed. */
  readonly load: WorkerLoads
  readonly pools: readonly WorkerPool[]
  /** By pool: workers that were started and have not registered, and how starting has gone lately. */
  readonly starts: ReadonlyMap<string, StartState>
  readonly nowMs: number
}

export type PoolNumbers = { readonly queued: number; readonly busy: number; readonly workers: number; readonly desired: number }

export type PoolsDecision = {
  /** How many workers to start now. */
  readonly start: readonly { readonly pool: string; readonly count: number }[]
  /** Idle one-shot workers that nobody needs any more. */
  readonly drain: readonly string[]
  readonly pools: ReadonlyMap<string, PoolNumbers>
  /** Decide again after so long even if nothing changes: a start may be tried again then. */
  readonly requeueAfterMs?: number
}

/** A one-shot worker that was started for a Run that went elsewhere waits this long for another one. */
const spareMs = 60_000

/**
 * Decides how many workers each pool should have: a pool of mode Process has `clamp(busy + ceil(wanted / slots), min, max)`;
 * those that are starting count, so that a slow start is not answered by a second one for the same Run. Busy workers are
 * never counted out (invariant 8): only idle one-shot workers beyond that number are let go, after {@link spareMs}.
 */
export function decidePools({ demand, workers, load, pools, starts, nowMs }: PoolsInput): PoolsDecision {
  const start: { pool: string; count: number }[] = []
  const drain: string[] = []
  const numbers = new Map<string, PoolNumbers>()
  const membersOf = Map.groupBy(workers, worker => worker.spec.pool)
  let nextMs = Infinity
  for (const pool of pools) {
    const { name } = pool.metadata
    const { queued, wanted } = demand.get(name) ?? { queued: 0, wanted: 0 }
    const members = membersOf.get(name) ?? []
    const isBusy = (worker: Worker) => loadOf(worker, load).active > 0 || worker.status?.phase === 'Busy'
    const busy = members.filter(isBusy).length
    const { slots = 1, min = 0, max = 4, mode } = pool.spec
    const desired = Math.max(Math.min(busy + Math.ceil(wanted / slots), max), Math.min(min, max))
    numbers.set(name, { queued, busy, workers: members.length, desired })
    if (mode !== 'Process') continue

    const state = starts.get(name)
    const starting = state?.starting.length ?? 0
    const idle = members.filter(worker => !isBusy(worker) && canTakeRuns(worker) && !isSpent(worker, load))
    const missing = Math.min(desired - busy - idle.length - starting, max - members.length - starting)
    const inBackoff = state !== undefined && nowMs < state.notBeforeMs
    if (missing > 0 && inBackoff) nextMs = Math.min(nextMs, state.notBeforeMs)
    // After failed starts one worker is tried, not all of them.
    const allowed = inBackoff ? 0 : state && state.failures > 0 ? Math.min(missing, 1 - starting) : missing
    if (allowed > 0) start.push({ pool: name, count: allowed })
    const surplus = busy + idle.length + starting - desired
    for (const worker of idle.slice(0, Math.max(0, surplus))) {
      const spareAtMs = Date.parse(worker.metadata.creationTimestamp) + spareMs
      if (worker.spec.lifecycle !== 'OneShot') continue
      if (nowMs >= spareAtMs) drain.push(worker.metadata.name)
      else nextMs = Math.min(nextMs, spareAtMs)
    }
  }
  return { start, drain, pools: numbers, ...(nextMs < Infinity && { requeueAfterMs: Math.max(1, nextMs - nowMs) }) }
}
