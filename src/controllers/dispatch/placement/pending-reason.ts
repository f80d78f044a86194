import type { Worker, WorkerPool } from '../../../api/index.ts'
import type { StartState } from '../pool/index.ts'
import type { Lane, Needs, RunQueue } from '../queue/index.ts'
import { enginesOf, formatBytes, mismatch } from './match-worker.ts'

/** Why a Run waits. `status.reason` of the Run, documented in docs/queue.md. */
export type PendingReasonCode =
  | 'NoWorker'
  | 'TenantLimit'
  | 'ConcurrencyKey'
  | 'PoolAtMax'
  | 'GlobalLimit'
  | 'NoMatchingWorker'
  | 'PoolNotFound'
  | 'WorkerStartFailed'

export type PendingReason = { readonly reason: PendingReasonCode; readonly message: string }

export type WaitingInput = {
  readonly queue: RunQueue
  readonly workers: readonly Worker[]
  readonly pools: readonly WorkerPool[]
  readonly starts: ReadonlyMap<string, StartState>
  /** By pool: a Worker it had lately, for when it has none. Default: none. */
  readonly examples?: ReadonlyMap<string, Worker>
  readonly nowMs: number
}

/** Says of each Run why it waits. The same for all Runs of a lane, so it is found out once for each. */
export class PendingReasons {
  readonly #input: WaitingInput
  readonly #pools: ReadonlyMap<string, WorkerPool>
  readonly #members: Map<string, Worker[]>
  readonly #known = new Map<Lane, PendingReason>()

  constructor(input: WaitingInput) {
    this.#input = input
    this.#pools = new Map(input.pools.map(pool => [pool.metadata.name, pool]))
    this.#members = Map.groupBy(input.workers, worker => worker.spec.pool)
  }

  of(lane: Lane): PendingReason {
    let why = this.#known.get(lane)
    if (!why) {
      why = this.#find(lane)
      this.#known.set(lane, why)
    }
    return why
  }

  #find(lane: Lane): PendingReason {
    const { queue, starts, nowMs } = this.#input
    const { needs } = lane.queue.shape
    const pool = this.#pools.get(needs.pool)
    if (!pool) {
      const known = [...this.#pools.keys()]
      const there = known.length === 0 ? 'there are none' : `there ${known.length === 1 ? 'is' : 'are'} ${known.slice(0, 10).join(', ')}`
      return { reason: 'PoolNotFound', message: `there is no WorkerPool ${needs.pool}; ${there}` }
    }
    const { account } = lane.queue
    const hold = queue.laneHold(lane)
    if (hold === 'TenantLimit') {
      const message = `tenant ${account.name} runs ${account.running} of at most ${account.maxRunning} (spec.limits.maxRunning of Tenant ${account.name})`
      return { reason: hold, message }
    }
    if (hold === 'ConcurrencyKey') {
      const running = queue.keyRunning(lane)
      const runs = running === 1 ? '1 Run' : `${running} Runs`
      const key = lane.runs.peek()?.request.concurrency?.key
      return { reason: hold, message: `${runs} with concurrencyKey "${key}" of at most ${lane.limit} (spec.concurrencyLimit) are running` }
    }
    const poolHold = queue.poolHold(needs.pool)
    if (poolHold === 'GlobalLimit') return { reason: poolHold, message: `${queue.running} Runs of at most ${queue.maxRunning} are running` }
    if (poolHold === 'PoolLimit') {
      const limit = queue.poolLimit(needs.pool)
      return {
        reason: 'PoolAtMax',
        message: `pool ${needs.pool} runs ${queue.runningIn(needs.pool)} of at most ${limit} (spec.limits.maxRunning)`,
      }
    }
    const members = this.#members.get(needs.pool) ?? []
    const ready = members.filter(({ status, spec }) => status !== undefined && !spec.drain)
    const state = starts.get(needs.pool)
    const example = ready.length === 0 ? this.#input.examples?.get(needs.pool) : undefined
    const lacking = example && mismatch(needs, example, enginesOf([example]))
    // Such as it had let go: no more of them are started for this one.
    if (lacking !== undefined && members.length === 0 && (state?.starting.length ?? 0) === 0) {
      return { reason: 'NoMatchingWorker', message: `the last worker of pool ${needs.pool} lacked ${lacking}` }
    }
    if (ready.length > 0) {
      const engines = enginesOf(members)
      const misses = ready.map(worker => mismatch(needs, worker, engines))
      if (misses.every(miss => miss !== undefined)) {
        const which = ready.length === 1 ? `worker ${ready[0]!.metadata.name}` : `none of the ${ready.length} workers`
        const verb = ready.length === 1 ? 'lacks' : 'has'
        return {
          reason: 'NoMatchingWorker',
          message: `${which} of pool ${needs.pool} ${verb} ${[...new Set(misses)].slice(0, 3).join('; ')}`,
        }
      }
    }
    const why = waitForHands(pool, members.length + (state?.starting.length ?? 0), state, nowMs)
    const wants = formatResources(needs)
    if (wants === '' || !ready.some(({ status }) => status?.capacity)) return why
    return { ...why, message: `${why.message}; this one waits for a slot with ${wants} left` }
  }
}

function formatResources({ cpuMillis, memoryBytes }: Needs): string {
  return [cpuMillis > 0 && `cpu ${cpuMillis}m`, memoryBytes > 0 && `memory ${formatBytes(memoryBytes)}`].filter(Boolean).join(' and ')
}

function waitForHands(pool: WorkerPool, hands: number, state: StartState | undefined, nowMs: number): PendingReason {
  const { name } = pool.metadata
  if (pool.spec.mode === 'External') {
    if (hands > 0) return { reason: 'NoWorker', message: `every worker of pool ${name} is busy` }
    return { reason: 'NoWorker', message: `no worker of pool ${name} has joined; start one with: oarlock worker --pool ${name}` }
  }
  const { max = 4 } = pool.spec
  if (max === 0) return { reason: 'PoolAtMax', message: `pool ${name} has max 0` }
  if (state && state.failures > 0 && nowMs < state.notBeforeMs) {
    return { reason: 'WorkerStartFailed', message: `workers of pool ${name} do not start: ${state.lastTrouble?.message}` }
  }
  if (hands >= max) {
    const all = hands === 1 ? 'the only worker' : `all ${hands} workers`
    return { reason: 'PoolAtMax', message: `${all} of pool ${name} ${hands === 1 ? 'is' : 'are'} busy, and its max is ${max}` }
  }
  return { reason: 'NoWorker', message: `every worker of pool ${name} is busy or starting` }
}
