import { defaults, type Worker, type WorkerPool, type WorkerPoolSpec } from '../../../api/index.ts'
import { parseDuration } from '../../../kubernetes/object/index.ts'
import type { WorkerInventory } from '../placement/index.ts'
import type { StartState } from './start-state.ts'
import { warmMinimum } from './warm-minimum.ts'

/** Runs of a pool that have no Worker after placing. */
export type PoolDemand = {
  /** All that wait. */
  readonly queued: number
  /** Those of them that one more worker of this pool would let start: what waits for a limit is not counted. */
  readonly startable: number
}

export type PoolsInput = {
  readonly demand: ReadonlyMap<string, PoolDemand>
  /** With what was just placed. */
  readonly inventory: Pick<WorkerInventory, 'count' | 'idle' | 'pools'>
  readonly pools: readonly WorkerPool[]
  /** By pool: workers that were started and have not registered, and how starting has gone lately. */
  readonly starts: ReadonlyMap<string, StartState>
  readonly nowMs: number
}

export type PoolNumbers = {
  readonly queued: number
  readonly busy: number
  readonly starting: number
  readonly workers: number
  readonly desired: number
}

/** `Queue`: Runs wait. `Minimum`: `min` or the schedule asks for them. `Idle`: nobody needs them. `PoolDeleted`: their pool was deleted. */
export type ScaleReason = 'Queue' | 'Minimum' | 'Idle' | 'PoolDeleted'

export type PoolsDecision = {
  /** How many workers to start now. */
  readonly start: readonly { readonly pool: string; readonly count: number; readonly reason: ScaleReason }[]
  /** Idle workers that nobody needs any more. */
  readonly drain: readonly { readonly worker: string; readonly pool: string; readonly reason: ScaleReason }[]
  readonly pools: ReadonlyMap<string, PoolNumbers>
  /** By pool: what is wrong with its spec. */
  readonly errors: ReadonlyMap<string, string>
  /** Decide again after so long even if nothing changes: a start may be tried again then, or a window opens. */
  readonly requeueAfterMs?: number
}

/** What the size of one pool follows from. */
export type PoolCounts = {
  readonly spec: Pick<WorkerPoolSpec, 'slots' | 'max'>
  /** As in {@link PoolDemand}. */
  readonly startable: number
  /** All that are registered. */
  readonly workers: number
  readonly busy: number
  /** Those that would take a Run now. */
  readonly idle: number
  /** Workers to keep whatever the queue says: `min`, or that of the schedule. */
  readonly min: number
  readonly state: StartState | undefined
  readonly nowMs: number
}

export type PoolSize = {
  readonly desired: number
  /** Idle workers that may go once they have been idle for long enough; less than 0: so many are missing. */
  readonly surplus: number
  /** Workers to start now. */
  readonly start: number
  readonly reason: 'Queue' | 'Minimum'
  /** When a start may be tried again. */
  readonly requeueAfterMs?: number
}

/**
 * The arithmetic of {@link decidePools} for one pool, in O(1): `simulate/` asks it for each of a million events.
 *
 * @returns how many workers there should be, and how many to start now.
 */
export function decidePoolSize({ spec, startable, workers, busy, idle, min, state, nowMs }: PoolCounts): PoolSize {
  const { slots = 1, max = 4 } = spec
  const needed = busy + Math.ceil(startable / slots)
  const desired = Math.max(Math.min(needed, max), Math.min(min, max))
  const starting = state?.starting.length ?? 0
  const surplus = busy + idle + starting - desired
  const missing = Math.min(-surplus, max - workers - starting)
  const isInBackoff = state !== undefined && nowMs < state.notBeforeMs
  // After failed starts one worker is tried, not all of them.
  const isProbing = state !== undefined && state.failures > 0
  const allowed = isInBackoff ? 0 : isProbing ? Math.min(missing, 1 - starting - state.unproven.length) : missing
  return {
    desired,
    surplus,
    start: Math.max(0, allowed),
    reason: needed >= min ? 'Queue' : 'Minimum',
    ...(missing > 0 && isInBackoff && { requeueAfterMs: state.notBeforeMs - nowMs }),
  }
}

/** Workers of a pool that was deleted, and does not come back, go after this long without a Run. */
const deletedPoolGraceMs = 60_000

/**
 * Decides how many workers each pool should have: `clamp(busy + ceil(wanted / slots), min, max)`, where `min` is that of the pool
 * or of an open window of its schedule. It is a number, not a factor: what is there already never multiplies what is asked for.
 *
 * Workers that are starting count, so that a slow start is not answered by a second one for the same Run. Upwards it goes at once;
 * downwards only a worker goes that has had no Run for `idleTimeout`, the longest idle one first. Busy ones are never counted out
 * (invariant 8). Workers of mode External are started, and unless `idleTimeout` is given also ended, by whoever owns the machine.
 */
export function decidePools({ demand, inventory, pools, starts, nowMs }: PoolsInput): PoolsDecision {
  const start: PoolsDecision['start'][number][] = []
  const drain: PoolsDecision['drain'][number][] = []
  const numbers = new Map<string, PoolNumbers>()
  const errors = new Map<string, string>()
  const deletedPools = new Set(inventory.pools())
  let requeueAfterMs = Number.POSITIVE_INFINITY
  const requeueAfter = (afterMs: number) => {
    requeueAfterMs = Math.min(requeueAfterMs, Math.max(1, afterMs))
  }
  /** Lets go of at most `count` idle ones whose time is over. */
  const drainIdle = (pool: string, count: number, idleTimeoutMs: number, reason: ScaleReason) => {
    if (count <= 0) return
    const bySince = inventory
      .idle(pool)
      .map(worker => ({ worker: worker.metadata.name, sinceMs: idleSinceMs(worker) }))
      .sort((a, b) => a.sinceMs - b.sinceMs)
    for (const { worker, sinceMs } of bySince.slice(0, count)) {
      if (nowMs >= sinceMs + idleTimeoutMs) drain.push({ worker, pool, reason })
      else requeueAfter(sinceMs + idleTimeoutMs - nowMs)
    }
  }

  for (const pool of pools) {
    const { name } = pool.metadata
    const { mode } = pool.spec
    const { queued, startable } = demand.get(name) ?? { queued: 0, startable: 0 }
    deletedPools.delete(name)
    const warm = warmMinimum(pool.spec, nowMs)
    if (warm.errors.length > 0) errors.set(name, warm.errors.join('; '))
    if (warm.requeueAfterMs !== undefined) requeueAfter(warm.requeueAfterMs)
    const { workers, busy, idle } = inventory.count(name)
    const state = starts.get(name)
    const starting = state?.starting.length ?? 0
    const size = decidePoolSize({ spec: pool.spec, startable, workers, busy, idle, min: warm.min, state, nowMs })
    const { desired, surplus } = size
    numbers.set(name, { queued, busy, starting, workers, desired })

    if (mode !== 'External' || pool.spec.idleTimeout !== undefined) drainIdle(name, surplus, idleTimeoutMs(pool), 'Idle')
    if (mode === 'External') continue

    if (size.requeueAfterMs !== undefined) requeueAfter(size.requeueAfterMs)
    if (size.start > 0) start.push({ pool: name, count: size.start, reason: size.reason })
  }
  for (const pool of deletedPools) drainIdle(pool, inventory.count(pool).idle, deletedPoolGraceMs, 'PoolDeleted')
  return { start, drain, pools: numbers, errors, ...(requeueAfterMs < Number.POSITIVE_INFINITY && { requeueAfterMs: requeueAfterMs }) }
}

/** How long an idle worker stays that nobody needs. */
export function idleTimeoutMs({ spec }: { readonly spec: Pick<WorkerPoolSpec, 'idleTimeout' | 'lifecycle'> }): number {
  return parseDuration(spec.idleTimeout ?? (spec.lifecycle === 'Warm' ? defaults.warmIdleTimeout : defaults.oneShotIdleTimeout))
}

/** A worker that never said so has been idle since it was made. By its own clock: it decides about money, not about life. */
function idleSinceMs({ metadata, status }: Worker): number {
  return Date.parse(status?.idleSince ?? metadata.creationTimestamp)
}
