import { defaults, type Worker, type WorkerPool, type WorkerPoolSpec } from '../../../api/index.ts'
import { parseDuration } from '../../../kubernetes/object/index.ts'
import { outdatedWorkers } from './pod-template.ts'
import type { StartState } from './start-state.ts'
import { warmMinimum } from './warm-minimum.ts'

/** Runs of a pool that remain queued after placement. */
export type PoolDemand = {
  /** All queued Runs. */
  readonly queued: number
  /** Queued Runs that more workers of this pool would let start; Runs blocked by a limit are not counted. */
  readonly startable: number
  /** Workers that these Runs need in addition, because those that are idle or starting are dedicated to others, or not seen by their partition. Default: as many as are missing. */
  readonly needed?: number
}

export type PoolsInput = {
  readonly demand: ReadonlyMap<string, PoolDemand>
  /** Includes the assignments of this pass. */
  readonly inventory: {
    pools(): Iterable<string>
    count(pool: string): { readonly workers: number; readonly busy: number; readonly idle: number }
    /** The idle Workers of a pool that would accept a Run now. */
    idle(pool: string): readonly Worker[]
    /** All registered Workers of a pool. */
    workersOf(pool: string): Iterable<Worker>
  }
  readonly pools: readonly WorkerPool[]
  /** By pool: workers that were started and have not registered, and the outcome of recent starts. */
  readonly starts: ReadonlyMap<string, StartState>
  readonly nowMs: number
}

export type PoolStatusCounts = {
  readonly queued: number
  readonly busy: number
  readonly starting: number
  readonly workers: number
  readonly desired: number
  /** Warm Pods of an earlier template; undefined: the pool has none. */
  readonly outdated?: number
}

/**
 * `Queue`: Runs are queued. `Minimum`: `min` or the schedule requires the workers. `Idle`: they are surplus. `PoolDeleted`: their pool was deleted.
 * `TrustDomain`: they make room for Runs of another trust domain. `Partition`: for Runs of a partition that does not use these workers.
 */
export type ScaleReason = 'Queue' | 'Minimum' | 'Idle' | 'PoolDeleted' | 'TrustDomain' | 'Partition'

export type PoolsDecision = {
  /** Workers to start now. */
  readonly start: readonly { readonly pool: string; readonly count: number; readonly reason: ScaleReason }[]
  /** Surplus idle workers. */
  readonly drain: readonly { readonly worker: string; readonly pool: string; readonly reason: ScaleReason }[]
  /** Surplus workers whose start fails, which may therefore never become idle. */
  readonly withdraw: readonly string[]
  readonly pools: ReadonlyMap<string, PoolStatusCounts>
  /** Errors in the spec, by pool. */
  readonly errors: ReadonlyMap<string, string>
  /** Time until the next decision is due even if nothing changes: a backoff ends, an idle timeout expires, or a window of a schedule opens. */
  readonly requeueAfterMs?: number
}

/** Input of {@link decidePoolSize}. */
export type PoolSizeInput = {
  readonly spec: Pick<WorkerPoolSpec, 'slots' | 'max'>
  /** As in {@link PoolDemand}. */
  readonly startable: number
  readonly needed?: number | undefined
  /** Registered workers. */
  readonly workers: number
  readonly busy: number
  /** Idle workers that would accept a Run now. */
  readonly idle: number
  /** Workers to keep even without Runs: `min`, or the minimum of the schedule. */
  readonly min: number
  readonly state: StartState | undefined
  readonly nowMs: number
}

export type PoolSize = {
  readonly desired: number
  /** Workers to drain once they have been idle for the idle timeout. Negative: the number of missing workers. */
  readonly surplus: number
  /** Workers to start now. */
  readonly start: number
  readonly reason: 'Queue' | 'Minimum'
  /** Time until the backoff ends. */
  readonly requeueAfterMs?: number
}

/**
 * The arithmetic of {@link decidePools} for one pool, in O(1): `simulate/` calls it for each of a million events.
 *
 * @returns the desired number of workers, and how many to start now.
 */
export function decidePoolSize({ spec, startable, needed: extra = 0, workers, busy, idle, min, state, nowMs }: PoolSizeInput): PoolSize {
  const { slots = 1, max = defaults.poolMax } = spec
  const needed = busy + Math.ceil(startable / slots)
  const desired = Math.max(Math.min(needed, max), Math.min(min, max))
  const starting = state?.starting.length ?? 0
  const surplus = busy + idle + starting - desired
  const missing = Math.min(Math.max(-surplus, extra), max - workers - starting)
  const isInBackoff = state !== undefined && nowMs < state.notBeforeMs
  // After a failed start a single worker probes whether starting works again.
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

/** Idle timeout of workers whose pool was deleted. A pool that is created again in time keeps them. */
const deletedPoolGraceMs = 60_000

/**
 * Decides how many workers each pool should have: `clamp(busy + ceil(startable / slots), min, max)`, where `min` is that of the pool or of an open
 * window of its schedule. The result is an absolute number: existing workers are never multiplied by a factor, as a HorizontalPodAutoscaler does.
 *
 * Starting workers count, so that a slow start does not cause a second one for the same Run. Scaling up is immediate. Scaling down drains only
 * workers that have been idle for `idleTimeout`, the longest idle first, and withdraws those whose start fails for that long, so that they do not use up
 * `max`; busy workers are never drained (invariant 8). Workers of mode External are started by the owner of the machine, and are drained here only if
 * `idleTimeout` is set.
 */
export function decidePools({ demand, inventory, pools, starts, nowMs }: PoolsInput): PoolsDecision {
  const start: PoolsDecision['start'][number][] = []
  const drain: PoolsDecision['drain'][number][] = []
  const withdraw: string[] = []
  const statusCounts = new Map<string, PoolStatusCounts>()
  const errors = new Map<string, string>()
  const deletedPools = new Set(inventory.pools())
  let requeueAfterMs = Number.POSITIVE_INFINITY
  const requeueAfter = (afterMs: number) => {
    requeueAfterMs = Math.min(requeueAfterMs, Math.max(1, afterMs))
  }
  /** Drains at most `count` idle workers whose idle timeout has expired. */
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
  /** Withdraws at most `count` workers that have been failing to start for the idle timeout. Returns how many. */
  const withdrawFailing = (state: StartState | undefined, count: number, timeoutMs: number): number => {
    const failing = (state?.starting ?? []).filter(({ failure }) => failure !== undefined).slice(0, Math.max(0, count))
    const due = failing.filter(({ sinceMs }) => nowMs >= sinceMs + timeoutMs)
    for (const { sinceMs } of failing) if (nowMs < sinceMs + timeoutMs) requeueAfter(sinceMs + timeoutMs - nowMs)
    withdraw.push(...due.map(({ name }) => name))
    return due.length
  }

  for (const pool of pools) {
    const { name } = pool.metadata
    const { mode } = pool.spec
    const { queued, startable, needed } = demand.get(name) ?? { queued: 0, startable: 0 }
    deletedPools.delete(name)
    const minimum = warmMinimum(pool.spec, nowMs)
    if (minimum.errors.length > 0) errors.set(name, minimum.errors.join('; '))
    if (minimum.requeueAfterMs !== undefined) requeueAfter(minimum.requeueAfterMs)
    const { workers, busy, idle } = inventory.count(name)
    const state = starts.get(name)
    const starting = state?.starting.length ?? 0
    const size = decidePoolSize({ spec: pool.spec, startable, needed, workers, busy, idle, min: minimum.min, state, nowMs })
    const { desired, surplus } = size
    const outdated = outdatedWorkers(pool, () => inventory.workersOf(name))
    statusCounts.set(name, { queued, busy, starting, workers, desired, ...(outdated !== undefined && { outdated }) })

    const withdrawn = withdrawFailing(state, surplus, idleTimeoutMs(pool))
    if (mode !== 'External' || pool.spec.idleTimeout !== undefined) drainIdle(name, surplus - withdrawn, idleTimeoutMs(pool), 'Idle')
    if (mode === 'External') continue

    if (size.requeueAfterMs !== undefined) requeueAfter(size.requeueAfterMs)
    if (size.start > 0) start.push({ pool: name, count: size.start, reason: size.reason })
  }
  for (const pool of deletedPools) drainIdle(pool, inventory.count(pool).idle, deletedPoolGraceMs, 'PoolDeleted')
  return { start, drain, withdraw, pools: statusCounts, errors, ...(requeueAfterMs < Number.POSITIVE_INFINITY && { requeueAfterMs }) }
}

/** How long a surplus worker remains idle before it is drained. */
export function idleTimeoutMs({ spec }: { readonly spec: Pick<WorkerPoolSpec, 'idleTimeout' | 'lifecycle'> }): number {
  return parseDuration(spec.idleTimeout ?? (spec.lifecycle === 'Warm' ? defaults.warmIdleTimeout : defaults.oneShotIdleTimeout))
}

/** A worker without `idleSince` has been idle since its creation. The worker's own clock is good enough: it affects cost, not correctness. */
export function idleSinceMs({ metadata, status }: Worker): number {
  return Date.parse(status?.idleSince ?? metadata.creationTimestamp)
}
