import type { Worker, WorkerPool } from '../../api/index.ts'
import { type Assignment, decidePlacement, type Engines, mismatch, type PlacementInput, type WorkerInventory } from './placement/index.ts'
import { decidePools, type PoolDemand, type PoolsDecision, type StartState } from './pool/index.ts'
import { type Needs, wantedIn } from './queue/index.ts'

export type DispatchInput = PlacementInput & {
  readonly pools: readonly WorkerPool[]
  /** By pool: workers that were started and have not registered, and how starting has gone lately. */
  readonly starts: ReadonlyMap<string, StartState>
  /** By pool: a Worker it had lately, to see what one that is started would be like. */
  readonly examples: ReadonlyMap<string, Worker>
}

export type DispatchDecision = PoolsDecision & { readonly assignments: readonly Assignment[] }

/** Decides which Worker gets which Run; then, by what is left, how many workers each pool should have. */
export function decideDispatch(input: DispatchInput): DispatchDecision {
  const { hands, pools, starts, nowMs } = input
  const assignments = decidePlacement(input)
  return { ...decidePools({ demand: demandOf(input), hands, pools, starts, nowMs }), assignments }
}

function demandOf({ queue, pools, hands, examples }: DispatchInput): Map<string, PoolDemand> {
  const shapesOf = Map.groupBy(queue.shapes(), ({ needs }) => needs.pool)
  if (shapesOf.size === 0) return new Map()
  return new Map(
    pools.map(({ metadata: { name }, spec }) => {
      const { max = 4, slots = 1 } = spec
      const shapes = (shapesOf.get(name) ?? []).filter(({ needs }) => helps(needs, hands, examples.get(name)))
      const wanted = wantedIn(queue, name, shapes, Math.max(1, max) * slots)
      return [name, { queued: queue.queuedIn(name), wanted }] as const
    }),
  )
}

/** Whether one more of the Workers of a pool, as they are or as the last one was, would do. One of which none will do helps nobody. */
function helps(needs: Needs, hands: WorkerInventory, example: Worker | undefined): boolean {
  const mayDo = (worker: Worker, engines: Engines) => !hasSaid(worker, needs) || mismatch(needs, worker, engines) === undefined
  const isRegistered = ({ status }: Worker) => status !== undefined
  if (!hands.some(needs.pool, isRegistered)) {
    return example === undefined || mayDo(example, new Set(Object.keys(example.status?.engines ?? {})))
  }
  const engines = hands.engines(needs.pool)
  return hands.some(needs.pool, worker => isRegistered(worker) && mayDo(worker, engines))
}

/** A Worker that has just registered may not have found out yet what it has: what it will not do for is not known. */
function hasSaid({ status }: Worker, { isolation }: Needs): boolean {
  if (isolation !== undefined && status?.isolation && !status.isolation.includes(isolation)) return true
  return status?.engines !== undefined && (isolation === undefined || status.isolation !== undefined)
}
