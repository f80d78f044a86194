import { defaults, type Worker, type WorkerPool } from '../../api/index.ts'
import type { DispatchAction } from './dispatch-action.ts'
import type { WriteOutcome } from './dispatch-event.ts'
import { type ObjectVersion, versionOf } from './object-version.ts'
import type { WorkerInventory } from './placement/index.ts'
import { isDividedByTrustDomain, makeRoom, nextDomainMs, planPods } from './plan-pods.ts'
import { type PlannedViews, planViews } from './plan-views.ts'
import { decidePools, type PlannedWorkers, type PoolDemand, type PoolsDecision, type StartTracker } from './pool/index.ts'
import type { RunQueue } from './queue/index.ts'
import type { DemandElsewhere } from './reported-demand.ts'

/** By pool mode: whether the names of new workers are claimed (`PoolDriver.claimsNames`). */
export type ClaimsNames = Readonly<Partial<Record<WorkerPool['spec']['mode'], boolean | undefined>>>

export type PoolAutoscalerInput = {
  readonly queue: RunQueue
  readonly inventory: WorkerInventory
  readonly pools: ReadonlyMap<string, WorkerPool>
  /** Of the queue, by pool. */
  readonly demand: ReadonlyMap<string, PoolDemand>
  /** Of the Runs of other partitions. */
  readonly demandElsewhere: (pool: string) => DemandElsewhere
  /** Whether the dispatcher of another partition uses this worker. Default: all use all. */
  readonly sees?: ((partition: string, worker: string) => boolean) | undefined
  /** The registered ones. */
  readonly workers: ReadonlyMap<string, Worker>
  readonly workerTemplates: ReadonlyMap<string, Worker>
  /** True while a write of the object is pending: nothing is decided for it. */
  readonly isPending: (object: ObjectVersion) => boolean
  readonly nowMs: number
  /** 0 ≤ x < 1 */
  readonly random: () => number
}

/** No partition has this name. */
const own = ''

/** Starts and drains workers for the Runs that remain queued after placement. */
export class PoolAutoscaler {
  readonly #starts: StartTracker
  readonly #claimsNames: ClaimsNames
  /** By pool: workers whose numbers are being claimed. */
  readonly #claims = new Map<string, readonly string[]>()

  constructor(starts: StartTracker, claimsNames: ClaimsNames) {
    this.#starts = starts
    this.#claimsNames = claimsNames
  }

  decide(input: PoolAutoscalerInput): { readonly actions: readonly DispatchAction[]; readonly decision: PoolsDecision } {
    const { queue, inventory, workers: registered, workerTemplates, isPending, nowMs, random } = input
    const pools = [...input.pools.values()]
    const demand = new Map(input.demand)
    for (const { metadata } of pools) {
      const { name } = metadata
      const { queued = 0, startable = 0 } = demand.get(name) ?? {}
      const elsewhere = input.demandElsewhere(name)
      if (elsewhere.queued > 0) demand.set(name, { queued: queued + elsewhere.queued, startable: startable + elsewhere.startable })
    }
    const podsOf = (pool: WorkerPool) => {
      const { name } = pool.metadata
      return { queue, inventory, pool, starts: this.#starts.states.get(name), template: workerTemplates.get(name), nowMs }
    }
    const plans = new Map<string, PlannedWorkers>()
    for (const pool of pools) {
      if (pool.spec.mode !== 'Pod' || !isDividedByTrustDomain(podsOf(pool))) continue
      const { name } = pool.metadata
      const { queued = 0, startable = 0 } = demand.get(name) ?? {}
      const plan = planPods({ ...podsOf(pool), count: pool.spec.max ?? defaults.poolMax })
      plans.set(name, plan)
      demand.set(name, { queued, startable, needed: plan.needs.length })
    }
    const views = new Map<string, PlannedViews>()
    for (const pool of input.sees ? pools : []) {
      const { name } = pool.metadata
      const { queued = 0, startable = 0 } = demand.get(name) ?? {}
      if (pool.spec.mode !== 'Process' || startable === 0) continue
      const view = this.#planViews(pool, input)
      views.set(name, view)
      demand.set(name, { queued, startable, needed: view.needs.length })
    }
    const decision = decidePools({ demand, inventory, pools, starts: this.#starts.states, nowMs })
    const actions: DispatchAction[] = []
    for (const { pool: name, count, reason } of decision.start) {
      const pool = input.pools.get(name)!
      const isNumbered = this.#claimsNames[pool.spec.mode] === true
      if (isNumbered && isPending(versionOf('WorkerPool', pool))) continue
      const plan = plans.get(name) ?? (pool.spec.mode === 'Pod' ? planPods({ ...podsOf(pool), count }) : undefined)
      // A Pod in the namespace of a Stack is created for a Run; others may be created for the minimum of the pool.
      const allowed = pool.spec.podNamespace === 'Stack' ? Math.min(count, plan?.needs.length ?? 0) : count
      if (allowed === 0) continue
      const seers = views.get(name)?.needs ?? []
      const fits = (index: number, worker: string) => {
        const partition = seers[index]
        return partition === undefined || partition === own || input.sees?.(partition, worker) !== false
      }
      const waiting = Math.max(0, (demand.get(name)?.startable ?? 0) - allowed)
      const { workers, claim, purposes } = this.#starts.start(pool, allowed, isNumbered, nowMs, random, plan?.needs, waiting, fits)
      if (claim !== undefined) this.#claims.set(name, workers)
      actions.push({ kind: 'StartWorkers', pool, workers, purposes, reason, claim })
    }
    const drains = [...decision.drain]
    const withdrawn = [...decision.withdraw]
    for (const [name, { needs, unused }] of [...plans, ...views]) {
      const pool = input.pools.get(name)!
      const { workers } = inventory.count(name)
      const starts = this.#starts.states.get(name)
      const started = actions.flatMap(action => (action.kind === 'StartWorkers' && action.pool === pool ? action.workers : [])).length
      const room = (pool.spec.max ?? defaults.poolMax) - workers - (starts?.starting.length ?? 0)
      if (room > 0 || needs.length <= started) continue
      // Room that is being made already.
      const leaving = [...inventory.workersOf(name)].filter(({ spec }) => spec.drain).length
      if (needs.length - started <= leaving) continue
      const { drain, withdraw } = makeRoom({ inventory, pool, starts }, unused, needs.length - started - leaving)
      for (const worker of drain) drains.push({ worker, pool: name, reason: views.has(name) ? 'Partition' : 'TrustDomain' })
      withdrawn.push(...withdraw)
    }
    for (const worker of new Set(withdrawn)) {
      this.#starts.removed(worker)
      actions.push({ kind: 'StopProcess', worker, force: false, reason: 'NotNeeded' })
    }
    for (const { worker: name, pool, reason } of drains) {
      const worker = registered.get(name)
      if (!worker || worker.spec.drain) continue
      const object = versionOf('Worker', worker)
      if (!isPending(object)) actions.push({ kind: 'DrainWorker', object, pool, reason })
    }
    const backoffMs = Math.min(...[...plans.keys()].map(name => nextDomainMs(this.#starts.states.get(name), nowMs) - nowMs))
    const requeueAfterMs = Math.min(decision.requeueAfterMs ?? Number.POSITIVE_INFINITY, Math.max(1, backoffMs))
    return { actions, decision: requeueAfterMs === Number.POSITIVE_INFINITY ? decision : { ...decision, requeueAfterMs } }
  }

  /** The Runs of this dispatcher, which sees all workers, are the last to be planned: they can use what remains. */
  #planViews(pool: WorkerPool, { demand, demandElsewhere, inventory, sees = () => true }: PoolAutoscalerInput): PlannedViews {
    const { name } = pool.metadata
    const startable = new Map([...demandElsewhere(name).byPartition, [own, demand.get(name)?.startable ?? 0]])
    const starting = this.#starts.states.get(name)?.starting ?? []
    return planViews({
      startable,
      workers: [...inventory.idle(name), ...starting.map(each => ({ metadata: each }))].map(({ metadata }) => metadata.name),
      slots: pool.spec.slots ?? 1,
      sees: (partition, worker) => partition === own || sees(partition, worker),
    })
  }

  /** Another leader has claimed the same number and created the Pod: it exists, whatever becomes of the claim. */
  processObserved(name: string): void {
    for (const [pool, claimed] of this.#claims)
      if (claimed.includes(name))
        this.#claims.set(
          pool,
          claimed.filter(other => other !== name),
        )
  }

  /** A write of the pool has ended. Workers that it did not claim were not started. */
  writeSettled(pool: string, outcome: WriteOutcome, nowMs: number): void {
    const claimed = this.#claims.get(pool)
    if (!claimed) return
    this.#claims.delete(pool)
    this.#starts.claimSettled(pool, outcome === 'Written')
    if (outcome !== 'Written') for (const worker of claimed) this.#starts.startFailed(pool, worker, undefined, nowMs)
  }
}
