import { defaults, type PendingReasonCode, type Worker, type WorkerPool } from '../../../api/index.ts'
import { enginesOf, formatMemory, unmetRequirement } from '../placement/index.ts'
import { domainFailure, type StartState } from '../pool/index.ts'
import type { FifoQueue, Requirements, RunQueue } from '../queue/index.ts'

export type PendingReason = { readonly reason: PendingReasonCode; readonly message: string }

export type PendingReasonsInput = {
  readonly queue: RunQueue
  /** The registered ones. */
  readonly workers: readonly Worker[]
  readonly pools: readonly WorkerPool[]
  readonly starts: ReadonlyMap<string, StartState>
  /** By pool: its most recent Worker, for pools without Workers. Default: none. */
  readonly workerTemplates?: ReadonlyMap<string, Worker> | undefined
  /** The controllers of home start the workers; whether home has not answered the last report about the pool. Default: this dispatcher starts them. */
  readonly isHomeSilent?: ((pool: string) => boolean) | undefined
  readonly nowMs: number
}

/** Computes why Runs are pending. All Runs of one FIFO queue have the same reason, so it is computed once for each. */
export class PendingReasons {
  readonly #input: PendingReasonsInput
  readonly #pools: ReadonlyMap<string, WorkerPool>
  readonly #workersByPool: Map<string, Worker[]>
  readonly #byQueue = new Map<FifoQueue, PendingReason>()

  constructor(input: PendingReasonsInput) {
    this.#input = input
    this.#pools = new Map(input.pools.map(pool => [pool.metadata.name, pool]))
    this.#workersByPool = Map.groupBy(input.workers, worker => worker.spec.pool)
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
    const { queue, starts, isHomeSilent, nowMs } = this.#input
    const { requirements } = fifo.tenantQueue.equivalenceClass
    const pool = this.#pools.get(requirements.pool)
    if (!pool) return poolNotFound(requirements.pool, [...this.#pools.keys()])
    if (requirements.violation !== undefined) return { reason: 'PolicyViolation', message: requirements.violation }
    const reached = limitReason(queue, fifo)
    if (reached) return reached
    const workers = this.#workersByPool.get(requirements.pool) ?? []
    const ready = workers.filter(({ spec }) => !spec.drain && !spec.cordon)
    const state = starts.get(requirements.pool)
    const starting = state?.starting.length ?? 0
    const template = workers.length + starting === 0 ? this.#input.workerTemplates?.get(requirements.pool) : undefined
    const mismatch =
      ready.length > 0 ? mismatchReason(requirements, ready, workers) : template && templateMismatchReason(requirements, template)
    if (mismatch) return mismatch
    const failure = startFailureReason(pool.metadata.name, requirements, state)
    const capacity = isHomeSilent
      ? homeCapacityReason(pool, workers.length, isHomeSilent(requirements.pool))
      : capacityReason(pool, workers.length + starting, state, nowMs)
    const reason = withCordoned(failure ?? capacity, workers)
    const resources = formatResources(requirements)
    if (resources === '' || !ready.some(({ status }) => status?.capacity)) return reason
    return { ...reason, message: `${reason.message}; this Run needs a slot with ${resources} free` }
  }
}

function poolNotFound(name: string, known: readonly string[]): PendingReason {
  const existing = known.length === 0 ? 'there are no WorkerPools' : `existing: ${known.slice(0, 10).join(', ')}`
  return { reason: 'PoolNotFound', message: `WorkerPool ${name} not found; ${existing}` }
}

function limitReason(queue: RunQueue, fifo: FifoQueue): PendingReason | undefined {
  const { account, equivalenceClass } = fifo.tenantQueue
  const { pool } = equivalenceClass.requirements
  const reason = queue.limitReached(fifo)
  if (reason === 'TenantLimit') {
    const { name, running, maxRunning } = account
    return {
      reason,
      message: `tenant ${name} has ${running} of at most ${maxRunning} active Runs (spec.limits.maxRunning of Tenant ${name})`,
    }
  }
  if (reason === 'ConcurrencyLimit') {
    const key = fifo.runs.peek()?.request.concurrency?.key
    const running = queue.runningWithKeyOf(fifo)
    return { reason, message: `concurrencyKey "${key}" has ${running} of at most ${fifo.limit} active Runs (spec.concurrencyLimit)` }
  }
  const poolReason = queue.poolLimitReached(pool)
  if (poolReason === 'GlobalLimit') {
    return {
      reason: poolReason,
      message: `${queue.running} of at most ${queue.maxRunning} Runs are active across all pools (--max-running)`,
    }
  }
  if (poolReason === 'PoolLimit') {
    const message = `pool ${pool} has ${queue.runningIn(pool)} of at most ${queue.poolLimit(pool)} active Runs (spec.limits.maxRunning)`
    return { reason: poolReason, message }
  }
  return undefined
}

/** Undefined if one of the `ready` Workers meets all requirements. */
function mismatchReason(requirements: Requirements, ready: readonly Worker[], all: readonly Worker[]): PendingReason | undefined {
  const engines = enginesOf(all)
  const unmet = ready.map(worker => unmetRequirement(requirements, worker, engines))
  if (unmet.some(requirement => requirement === undefined)) return undefined
  const subject = ready.length === 1 ? `worker ${ready[0]!.metadata.name}` : `none of the ${ready.length} workers`
  const verb = ready.length === 1 ? 'lacks' : 'has'
  const list = [...new Set(unmet)].slice(0, 3).join('; ')
  return { reason: 'NoMatchingWorker', message: `${subject} of pool ${requirements.pool} ${verb} ${list}` }
}

/** A new worker would lack the same as the previous one, so none is started for the Run. */
function templateMismatchReason(requirements: Requirements, template: Worker): PendingReason | undefined {
  const unmet = unmetRequirement(requirements, template, enginesOf([template]))
  return unmet === undefined
    ? undefined
    : { reason: 'NoMatchingWorker', message: `the last worker of pool ${requirements.pool} lacked ${unmet}` }
}

/** A cordon that a user forgot is why a Run waits. */
function withCordoned(pending: PendingReason, workers: readonly Worker[]): PendingReason {
  const cordoned = workers.filter(({ spec }) => spec.cordon && !spec.drain)
  if (cordoned.length === 0) return pending
  const subject = cordoned.length === 1 ? `worker ${cordoned[0]!.metadata.name} is cordoned` : `${cordoned.length} workers are cordoned`
  return { ...pending, message: `${pending.message}; ${subject}` }
}

function formatResources({ cpuMillis, memoryBytes }: Requirements): string {
  return [cpuMillis > 0 && `cpu ${cpuMillis}m`, memoryBytes > 0 && `memory ${formatMemory(memoryBytes)}`].filter(Boolean).join(' and ')
}

/** Pods for this Run, or all that are starting, fail at the moment; some may still succeed. */
function startFailureReason(pool: string, { trustDomain }: Requirements, state: StartState | undefined): PendingReason | undefined {
  const present = state?.starting.filter(({ trustDomain: own }) => own === undefined || own === trustDomain) ?? []
  const isFailing = present.length > 0 && present.every(({ failure }) => failure !== undefined)
  const failure = isFailing ? present[0]?.failure : domainFailure(state, trustDomain)?.lastFailure
  return failure && { reason: 'WorkerStartFailed', message: `workers of pool ${pool} do not start: ${failure.message}` }
}

/** What does not depend on who starts the workers. */
function limitedCapacityReason(pool: WorkerPool, workers: number): PendingReason | undefined {
  const { name } = pool.metadata
  if (pool.spec.mode === 'External') {
    if (workers > 0) return { reason: 'NoWorkerAvailable', message: `every worker of pool ${name} is busy` }
    return {
      reason: 'NoWorkerJoined',
      message: `no worker of pool ${name} has joined; create a token for one with: oarlock token create --pool ${name}`,
    }
  }
  const { max = defaults.poolMax } = pool.spec
  if (max === 0) return { reason: 'PoolLimit', message: `pool ${name} allows no workers: spec.max is 0` }
  if (workers < max) return undefined
  const subject = workers === 1 ? `the only worker of pool ${name} is` : `all ${workers} workers of pool ${name} are`
  return { reason: 'PoolLimit', message: `${subject} busy, and spec.max is ${max}` }
}

/** @param workers registered or starting. */
function capacityReason(pool: WorkerPool, workers: number, state: StartState | undefined, nowMs: number): PendingReason {
  const { name } = pool.metadata
  const isStarted = pool.spec.mode !== 'External' && pool.spec.max !== 0
  if (isStarted && state && state.failures > 0 && nowMs < state.notBeforeMs)
    return { reason: 'WorkerStartFailed', message: `workers of pool ${name} fail to start: ${state.lastFailure?.message}` }
  const message = workers > 0 ? `every worker of pool ${name} is busy or starting` : `pool ${name} has no worker yet`
  return limitedCapacityReason(pool, workers) ?? { reason: 'NoWorkerAvailable', message }
}

/**
 * Over partitions the controllers of home start the workers. @param workers that this partition sees; which are starting is not known here.
 * @param isSilent home has not answered.
 */
function homeCapacityReason(pool: WorkerPool, workers: number, isSilent: boolean): PendingReason {
  const { name } = pool.metadata
  const subject =
    workers > 0 ? `every worker of pool ${name} that this partition uses is busy` : `pool ${name} has no worker for this partition`
  const next = isSilent
    ? 'and home, whose controllers start one, does not answer; check the API server of home'
    : `and the controllers of home start one; if they do not, see the status of WorkerPool ${name} at home`
  return limitedCapacityReason(pool, workers) ?? { reason: 'NoWorkerAvailable', message: `${subject}, ${next}` }
}
