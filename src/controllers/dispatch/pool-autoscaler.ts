import type { Worker, WorkerPool } from '../../api/index.ts'
import type { DispatchAction } from './dispatch-action.ts'
import type { WriteOutcome } from './dispatch-event.ts'
import { type ObjectVersion, versionOf } from './object-version.ts'
import type { WorkerInventory } from './placement/index.ts'
import { decidePools, type PoolsDecision, type StartTracker } from './pool/index.ts'
import { demandOf } from './pool-demand.ts'
import type { RunQueue } from './queue/index.ts'

/** By pool mode: whether the names of new workers are claimed (`PoolDriver.claimsNames`). */
export type ClaimsNames = Readonly<Partial<Record<WorkerPool['spec']['mode'], boolean | undefined>>>

export type PoolAutoscalerInput = {
  readonly queue: RunQueue
  readonly inventory: WorkerInventory
  readonly pools: ReadonlyMap<string, WorkerPool>
  /** The registered ones. */
  readonly workers: ReadonlyMap<string, Worker>
  readonly workerTemplates: ReadonlyMap<string, Worker>
  /** True while a write of the object is pending: nothing is decided for it. */
  readonly isPending: (object: ObjectVersion) => boolean
  readonly nowMs: number
  /** 0 ≤ x < 1 */
  readonly random: () => number
}

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
    const demand = demandOf({ queue, inventory, pools, workerTemplates })
    const decision = decidePools({ demand, inventory, pools, starts: this.#starts.states, nowMs })
    const actions: DispatchAction[] = []
    for (const { pool: name, count, reason } of decision.start) {
      const pool = input.pools.get(name)!
      const isNumbered = this.#claimsNames[pool.spec.mode] === true
      if (isNumbered && isPending(versionOf('WorkerPool', pool))) continue
      const { workers, claim } = this.#starts.start(pool, count, isNumbered, nowMs, random)
      if (claim !== undefined) this.#claims.set(name, workers)
      actions.push({ kind: 'StartWorkers', pool, workers, reason, claim })
    }
    for (const { worker: name, pool, reason } of decision.drain) {
      const worker = registered.get(name)
      if (!worker || worker.spec.drain) continue
      const object = versionOf('Worker', worker)
      if (!isPending(object)) actions.push({ kind: 'DrainWorker', object, pool, reason })
    }
    return { actions, decision }
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
    const claimed = this.#claims.get(pool) ?? []
    this.#claims.delete(pool)
    if (outcome !== 'Written') for (const worker of claimed) this.#starts.startFailed(pool, worker, undefined, nowMs)
  }
}
