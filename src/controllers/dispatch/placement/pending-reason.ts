import type { Worker, WorkerPool } from '../../../api/index.ts'
import type { StartState } from '../pool/index.ts'
import type { FifoQueue, Requirements, RunQueue } from '../queue/index.ts'
import { enginesOf, formatBytes, unmetRequirement } from './match-worker.ts'

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

export type PendingReasonsInput = {
  readonly queue: RunQueue
  readonly workers: readonly Worker[]
  readonly pools: readonly WorkerPool[]
  readonly starts: ReadonlyMap<string, StartState>
  /** By pool: a Worker it had lately, for when it has none. Default: none. */
  readonly workerTemplates?: ReadonlyMap<string, Worker>
  readonly nowMs: number
}

/** Says of each Run why it waits. The same for all Runs of a lane, so it is found out once for each. */
export class PendingReasons {
  readonly #input: PendingReasonsInput
  readonly #pools: ReadonlyMap<string, WorkerPool>
  readonly #members: Map<string, Worker[]>
  readonly #byQueue = new Map<FifoQueue, PendingReason>()

  constructor(input: PendingReasonsInput) {
    this.#input = input
    this.#pools = new Map(input.pools.map(pool => [pool.metadata.name, pool]))
    this.#members = Map.groupBy(input.workers, worker => worker.spec.pool)
  }

  of(fifo: FifoQueue): PendingReason {
    let reason = this.#byQueue.get(fifo)
    if (!reason) {
      reason = this.#compute(fifo)
      this.#byQueue.set(fifo, reason)
    }
    return reason
  }

  #compute(fifo: FifoQueue): PendingReason {
    const { queue, starts, nowMs } = this.#input
    const { requirements } = fifo.tenantQueue.equivalenceClass
    const pool = this.#pools.get(requirements.pool)
    if (!pool) {
      const known = [...this.#pools.keys()]
      const there = known.length === 0 ? 'there are none' : `there ${known.length === 1 ? 'is' : 'are'} ${known.slice(0, 10).join(', ')}`
      return { reason: 'PoolNotFound', message: `there is no WorkerPool ${requirements.pool}; ${there}` }
    }
    const { account } = fifo.tenantQueue
    const limit = queue.limitReached(fifo)
    if (limit === 'TenantLimit') {
      const message = `tenant ${account.name} runs ${account.running} of at most ${account.maxRunning} (spec.limits.maxRunning of Tenant ${account.name})`
      return { reason: limit, message }
    }
    if (limit === 'ConcurrencyKey') {
      const running = queue.runningWithKeyOf(fifo)
      const runs = running === 1 ? '1 Run' : `${running} Runs`
      const key = fifo.runs.peek()?.request.concurrency?.key
      return { reason: limit, message: `${runs} with concurrencyKey "${key}" of at most ${fifo.limit} (spec.concurrencyLimit) are running` }
    }
    const poolHold = queue.poolLimitReached(requirements.pool)
    if (poolHold === 'GlobalLimit') return { reason: poolHold, message: `${queue.running} Runs of at most ${queue.maxRunning} are running` }
    if (poolHold === 'PoolLimit') {
      const limit = queue.poolLimit(requirements.pool)
      return {
        reason: 'PoolAtMax',
        message: `pool ${requirements.pool} runs ${queue.runningIn(requirements.pool)} of at most ${limit} (spec.limits.maxRunning)`,
      }
    }
    const members = this.#members.get(requirements.pool) ?? []
    const ready = members.filter(({ status, spec }) => status !== undefined && !spec.drain)
    const state = starts.get(requirements.pool)
    const template = ready.length === 0 ? this.#input.workerTemplates?.get(requirements.pool) : undefined
    const lacking = template && unmetRequirement(requirements, template, enginesOf([template]))
    // Such as it had let go: no more of them are started for this one.
    if (lacking !== undefined && members.length === 0 && (state?.starting.length ?? 0) === 0) {
      return { reason: 'NoMatchingWorker', message: `the last worker of pool ${requirements.pool} lacked ${lacking}` }
    }
    if (ready.length > 0) {
      const engines = enginesOf(members)
      const misses = ready.map(worker => unmetRequirement(requirements, worker, engines))
      if (misses.every(miss => miss !== undefined)) {
        const which = ready.length === 1 ? `worker ${ready[0]!.metadata.name}` : `none of the ${ready.length} workers`
        const verb = ready.length === 1 ? 'lacks' : 'has'
        return {
          reason: 'NoMatchingWorker',
          message: `${which} of pool ${requirements.pool} ${verb} ${[...new Set(misses)].slice(0, 3).join('; ')}`,
        }
      }
    }
    const reason = capacityReason(pool, members.length + (state?.starting.length ?? 0), state, nowMs)
    const wants = formatResources(requirements)
    if (wants === '' || !ready.some(({ status }) => status?.capacity)) return reason
    return { ...reason, message: `${reason.message}; this one waits for a slot with ${wants} left` }
  }
}

function formatResources({ cpuMillis, memoryBytes }: Requirements): string {
  return [cpuMillis > 0 && `cpu ${cpuMillis}m`, memoryBytes > 0 && `memory ${formatBytes(memoryBytes)}`].filter(Boolean).join(' and ')
}

function capacityReason(pool: WorkerPool, workers: number, state: StartState | undefined, nowMs: number): PendingReason {
  const { name } = pool.metadata
  if (pool.spec.mode === 'External') {
    if (workers > 0) return { reason: 'NoWorker', message: `every worker of pool ${name} is busy` }
    return { reason: 'NoWorker', message: `no worker of pool ${name} has joined; start one with: oarlock worker --pool ${name}` }
  }
  const { max = 4 } = pool.spec
  if (max === 0) return { reason: 'PoolAtMax', message: `pool ${name} has max 0` }
  if (state && state.failures > 0 && nowMs < state.notBeforeMs) {
    return { reason: 'WorkerStartFailed', message: `workers of pool ${name} do not start: ${state.lastFailure?.message}` }
  }
  if (workers >= max) {
    const all = workers === 1 ? 'the only worker' : `all ${workers} workers`
    return { reason: 'PoolAtMax', message: `${all} of pool ${name} ${workers === 1 ? 'is' : 'are'} busy, and its max is ${max}` }
  }
  return { reason: 'NoWorker', message: `every worker of pool ${name} is busy or starting` }
}
