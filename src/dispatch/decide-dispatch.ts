import type { Run, Worker, WorkerPool } from '../api/index.ts'
import { objectKey } from '../kube/index.ts'
import { compareQueued } from './queue-order.ts'
import type { StartState } from './start-state.ts'

export type DispatchInput = {
  /** Runs in phase Queued without a Worker that are neither canceled nor being deleted. */
  readonly queued: readonly Run[]
  readonly workers: readonly Worker[]
  /** By Worker: how many Runs it works on, and how many it ever got. */
  readonly load: ReadonlyMap<string, WorkerLoad>
  readonly pools: readonly WorkerPool[]
  /** By pool: workers that were started and have not registered, and how starting has gone lately. */
  readonly starts: ReadonlyMap<string, StartState>
  readonly nowMs: number
}

export type WorkerLoad = { readonly active: number; readonly total: number }

export type PoolNumbers = { readonly queued: number; readonly busy: number; readonly workers: number; readonly desired: number }

export type Waiting = { readonly run: Run; readonly reason: WaitReason; readonly message: string }
export type WaitReason = 'PoolNotFound' | 'PoolHasNoRoom' | 'WorkerStartFailed' | 'NoWorker'

export type DispatchDecision = {
  readonly assignments: readonly { readonly run: Run; readonly worker: string }[]
  /** How many workers to start now. */
  readonly start: readonly { readonly pool: string; readonly count: number }[]
  /** Idle one-shot workers that nobody needs any more. */
  readonly drain: readonly string[]
  readonly pools: ReadonlyMap<string, PoolNumbers>
  /** Runs that got no Worker, with what they wait for, in the order in which they will get one. */
  readonly waiting: readonly Waiting[]
  /** Decide again after so long even if nothing changes: a start may be tried again then. */
  readonly requeueAfterMs?: number
}

/** A one-shot worker that was started for a Run that went elsewhere waits this long for another one. */
const spareMs = 60_000

/**
 * Decides which Worker gets which Run, and how many workers each pool should have.
 *
 * Runs go by priority, then age. A pool of mode Process has `clamp(busy + ceil(queued / slots), min, max)` workers; those
 * that are starting count, so that a slow start is not answered by a second one for the same Run. Busy workers are never
 * counted out (invariant 8): only idle one-shot workers beyond that number are let go, after {@link spareMs}.
 */
export function decideDispatch(input: DispatchInput): DispatchDecision {
  const { queued, workers, load, pools, starts, nowMs } = input
  const free = freeWorkers(workers, load)
  const assignments: { run: Run; worker: string }[] = []
  const left = new Map<string, Run[]>()
  const given = new Map<string, number>()
  for (const run of [...queued].sort(compareQueued)) {
    const { pool } = run.spec
    const place = free.get(pool)?.take()
    if (place) {
      assignments.push({ run, worker: place })
      given.set(place, (given.get(place) ?? 0) + 1)
    } else {
      const rest = left.get(pool)
      if (rest) rest.push(run)
      else left.set(pool, [run])
    }
  }

  const start: { pool: string; count: number }[] = []
  const drain: string[] = []
  const numbers = new Map<string, PoolNumbers>()
  const waiting: Waiting[] = []
  let nextMs = Infinity
  for (const pool of pools) {
    const { name } = pool.metadata
    const rest = left.get(name) ?? []
    left.delete(name)
    const members = workers.filter(worker => worker.spec.pool === name)
    const activeOf = (worker: Worker) => (load.get(worker.metadata.name)?.active ?? 0) + (given.get(worker.metadata.name) ?? 0)
    const isBusy = (worker: Worker) => activeOf(worker) > 0 || worker.status?.phase === 'Busy'
    const busy = members.filter(isBusy).length
    const { slots = 1, min = 0, max = 4, mode } = pool.spec
    const desired = Math.max(Math.min(busy + Math.ceil(rest.length / slots), max), Math.min(min, max))
    numbers.set(name, { queued: rest.length, busy, workers: members.length, desired })

    const state = starts.get(name)
    const starting = state?.starting.length ?? 0
    if (mode === 'Process') {
      const idle = members.filter(worker => !isBusy(worker) && canTakeRuns(worker) && !isSpent(worker, load))
      const wanted = Math.min(desired - busy - idle.length - starting, max - members.length - starting)
      const inBackoff = state !== undefined && nowMs < state.notBeforeMs
      if (wanted > 0 && inBackoff) nextMs = Math.min(nextMs, state.notBeforeMs)
      // After failed starts one worker is tried, not all of them.
      const allowed = inBackoff ? 0 : state && state.failures > 0 ? Math.min(wanted, 1 - starting) : wanted
      if (allowed > 0) start.push({ pool: name, count: allowed })
      const surplus = busy + idle.length + starting - desired
      for (const worker of idle.slice(0, Math.max(0, surplus))) {
        const spareAtMs = Date.parse(worker.metadata.creationTimestamp) + spareMs
        if (worker.spec.lifecycle !== 'OneShot') continue
        if (nowMs >= spareAtMs) drain.push(worker.metadata.name)
        else nextMs = Math.min(nextMs, spareAtMs)
      }
    }
    const why = waitReason(pool, members.length + starting, state, nowMs)
    for (const run of rest) waiting.push({ run, ...why })
  }
  const known = pools.map(({ metadata }) => metadata.name)
  for (const [pool, runs] of left) {
    const message = `there is no WorkerPool ${pool}; there ${known.length === 1 ? 'is' : 'are'} ${known.join(', ') || 'none'}`
    for (const run of runs) waiting.push({ run, reason: 'PoolNotFound', message })
  }
  return { assignments, start, drain, pools: numbers, waiting, ...(nextMs < Infinity && { requeueAfterMs: Math.max(1, nextMs - nowMs) }) }
}

function waitReason(
  pool: WorkerPool,
  hands: number,
  state: StartState | undefined,
  nowMs: number,
): { reason: WaitReason; message: string } {
  const { name } = pool.metadata
  if (pool.spec.mode === 'External') {
    if (hands > 0) return { reason: 'NoWorker', message: `every worker of pool ${name} is busy` }
    return { reason: 'NoWorker', message: `no worker of pool ${name} has joined; start one with: oarlock worker --pool ${name}` }
  }
  if ((pool.spec.max ?? 4) === 0) return { reason: 'PoolHasNoRoom', message: `pool ${name} has max 0` }
  if (state && state.failures > 0 && nowMs < state.notBeforeMs) {
    return { reason: 'WorkerStartFailed', message: `workers of pool ${name} do not start: ${state.lastError}` }
  }
  return { reason: 'NoWorker', message: `every worker of pool ${name} is busy or starting` }
}

/** Whether the Worker takes Runs at all. */
function canTakeRuns(worker: Worker): boolean {
  return !worker.spec.drain && !worker.metadata.deletionTimestamp && (worker.status?.phase ?? 'Ready') !== 'Draining'
}

/** A one-shot worker takes as many Runs as it has slots in its whole life; afterwards it is about to exit. */
function isSpent(worker: Worker, load: ReadonlyMap<string, WorkerLoad>): boolean {
  return worker.spec.lifecycle === 'OneShot' && (load.get(worker.metadata.name)?.total ?? 0) >= worker.spec.slots
}

/** Free places by pool. Workers are filled one after the other, the most loaded first, so that idle ones can go. */
function freeWorkers(workers: readonly Worker[], load: ReadonlyMap<string, WorkerLoad>): Map<string, FreePlaces> {
  const byPool = new Map<string, { name: string; active: number; free: number }[]>()
  for (const worker of workers) {
    const { name } = worker.metadata
    const { active, total } = load.get(name) ?? { active: 0, total: 0 }
    // A worker without a status has not said that it is ready; one that says Busy may still have free slots.
    if (!worker.status || !canTakeRuns(worker)) continue
    const { slots, lifecycle, pool } = worker.spec
    const free = lifecycle === 'OneShot' ? (worker.status.phase === 'Ready' ? slots - total : 0) : slots - active
    if (free <= 0) continue
    const places = byPool.get(pool)
    if (places) places.push({ name, active, free })
    else byPool.set(pool, [{ name, active, free }])
  }
  return new Map([...byPool].map(([pool, places]) => [pool, new FreePlaces(places)]))
}

class FreePlaces {
  readonly #places: { name: string; active: number; free: number }[]
  #at = 0

  constructor(places: { name: string; active: number; free: number }[]) {
    this.#places = places.sort((a, b) => b.active - a.active || (a.name < b.name ? -1 : 1))
  }

  take(): string | undefined {
    const place = this.#places[this.#at]
    if (!place) return undefined
    if (--place.free === 0) this.#at++
    return place.name
  }
}

/** `namespace/name` of the Runs that wait, in order: for tests and for `oarlock get runs`. */
export function queueOrder(queued: readonly Run[]): string[] {
  return [...queued].sort(compareQueued).map(objectKey)
}
