import type { Worker, WorkerPool } from '../api/index.ts'
import { type Assignment, decidePlacement, enginesOf, mismatch, type PlacementInput } from './place/index.ts'
import { decidePools, type PoolDemand, type PoolsDecision, type StartState } from './pool/index.ts'
import { type Needs, type RunQueue, type Shape, wantedIn } from './queue/index.ts'
import type { WorkerLoad, WorkerLoads } from './worker-load.ts'

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
  const { queue, workers, pools, starts, examples, nowMs } = input
  const assignments = decidePlacement(input)
  const load = withAssignments(input.load, assignments)
  const demand = demandOf(queue, pools, workers, examples)
  return { ...decidePools({ demand, workers, load, pools, starts, nowMs }), assignments }
}

function withAssignments(load: WorkerLoads, assignments: readonly Assignment[]): WorkerLoads {
  if (assignments.length === 0) return load
  const next = new Map<string, WorkerLoad>(load)
  for (const { worker } of assignments) {
    const { active, total } = next.get(worker) ?? { active: 0, total: 0 }
    next.set(worker, { active: active + 1, total: total + 1 })
  }
  return next
}

function demandOf(
  queue: RunQueue,
  pools: readonly WorkerPool[],
  workers: readonly Worker[],
  examples: ReadonlyMap<string, Worker>,
): Map<string, PoolDemand> {
  const shapesOf = Map.groupBy(queue.shapes(), ({ needs }) => needs.pool)
  if (shapesOf.size === 0) return new Map()
  const membersOf = Map.groupBy(workers, worker => worker.spec.pool)
  return new Map(
    pools.map(({ metadata: { name }, spec }) => {
      const members = (membersOf.get(name) ?? []).filter(({ status }) => status !== undefined)
      const example = examples.get(name)
      const known = members.length > 0 ? members : example ? [example] : []
      // One more of workers of which none will do helps nobody.
      const helps = ({ needs }: Shape) =>
        known.length === 0 || known.some(worker => !hasSaid(worker, needs) || mismatch(needs, worker, enginesOf(known)) === undefined)
      const { max = 4, slots = 1 } = spec
      const wanted = wantedIn(queue, name, (shapesOf.get(name) ?? []).filter(helps), Math.max(1, max) * slots)
      return [name, { queued: queue.queuedIn(name), wanted }] as const
    }),
  )
}

/** A Worker that has just registered may not have found out yet what it has: what it will not do for is not known. */
function hasSaid({ status }: Worker, { isolation }: Needs): boolean {
  if (isolation !== undefined && status?.isolation && !status.isolation.includes(isolation)) return true
  return status?.engines !== undefined && (isolation === undefined || status.isolation !== undefined)
}
