import type { WorkerPool } from '../../../api/index.ts'
import type { DispatchAction } from '../dispatch-action.ts'
import { type ObjectVersion, versionOf } from '../object-version.ts'
import type { PoolsDecision, StartState } from '../pool/index.ts'
import { CoalescedWrites } from './coalesced-writes.ts'
import { poolStatusOf } from './pool-status.ts'

export type PoolStatusesInput = {
  readonly pools: ReadonlyMap<string, WorkerPool>
  readonly decision: Pick<PoolsDecision, 'pools' | 'errors'>
  readonly starts: ReadonlyMap<string, StartState>
  /** Partitions whose report in `status.demand` has expired. Default: none. */
  readonly expiredDemand?: (pool: string) => readonly string[]
  /** True while a write of the pool is pending: nothing is decided for it. */
  readonly isPending: (pool: ObjectVersion) => boolean
  readonly nowMs: number
}

/** Reports the statuses of pools. */
export class PoolStatuses {
  readonly #writes = new CoalescedWrites()

  /** @returns the actions, and the milliseconds until the next status is due; Infinity if none is. */
  decide(input: PoolStatusesInput): { readonly actions: readonly DispatchAction[]; readonly requeueAfterMs: number } {
    const { decision, starts, expiredDemand, isPending, nowMs } = input
    const actions: DispatchAction[] = []
    let requeueAfterMs = Number.POSITIVE_INFINITY
    for (const [name, counts] of decision.pools) {
      const pool = input.pools.get(name)!
      if (isPending(versionOf('WorkerPool', pool))) continue
      const specError = decision.errors.get(name)
      const { status, change } = poolStatusOf({ pool, counts, starts: starts.get(name), specError, expired: expiredDemand?.(name), nowMs })
      const inMs = this.#writes.dueInMs(name, change, nowMs)
      if (inMs === 0) actions.push({ kind: 'PatchPoolStatus', pool, status })
      else requeueAfterMs = Math.min(requeueAfterMs, inMs)
    }
    return { actions, requeueAfterMs }
  }

  forget(pool: string): void {
    this.#writes.forget(pool)
  }
}
