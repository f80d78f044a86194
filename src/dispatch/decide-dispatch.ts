import type { Run, Worker, WorkerPool } from '../api/index.ts'
import { decidePlacement, explainWaiting, type Placement, type Waiting } from './place/index.ts'
import { decidePools, type PoolDemand, type PoolsDecision, type StartState } from './pool/index.ts'
import type { WorkerLoads } from './worker-load.ts'

export type DispatchInput = {
  /** Runs in phase Queued without a Worker that are neither canceled nor being deleted. */
  readonly queued: readonly Run[]
  readonly workers: readonly Worker[]
  readonly load: WorkerLoads
  readonly pools: readonly WorkerPool[]
  /** By pool: workers that were started and have not registered, and how starting has gone lately. */
  readonly starts: ReadonlyMap<string, StartState>
  readonly nowMs: number
}

export type DispatchDecision = PoolsDecision & {
  readonly assignments: Placement['assignments']
  /** Runs that got no Worker, with what they wait for, in the order in which they will get one. */
  readonly waiting: readonly Waiting[]
}

/** Decides which Worker gets which Run; then, by what is left, how many workers each pool should have. */
export function decideDispatch({ queued, workers, load, pools, starts, nowMs }: DispatchInput): DispatchDecision {
  const placement = decidePlacement({ queued, workers, load })
  const demand = new Map<string, PoolDemand>()
  for (const [pool, runs] of placement.left) demand.set(pool, { queued: runs.length, wanted: runs.length })
  const sizes = decidePools({ demand, workers, load: placement.load, pools, starts, nowMs })
  const waiting = explainWaiting({ left: placement.left, workers, pools, starts, nowMs })
  return { ...sizes, assignments: placement.assignments, waiting }
}
