import type { Worker, WorkerPool } from '../../api/index.ts'
import {
  type Assignment,
  decidePlacement,
  type Engines,
  type PlacementInput,
  unmetRequirement,
  type WorkerInventory,
} from './placement/index.ts'
import { decidePools, type PoolDemand, type PoolsDecision, type StartState } from './pool/index.ts'
import { countStartable, type Requirements } from './queue/index.ts'

export type DispatchInput = PlacementInput & {
  readonly pools: readonly WorkerPool[]
  /** By pool: workers that were started and have not registered, and how starting has gone lately. */
  readonly starts: ReadonlyMap<string, StartState>
  /** By pool: a Worker it had lately, to see what one that is started would be like. */
  readonly workerTemplates: ReadonlyMap<string, Worker>
}

export type DispatchDecision = PoolsDecision & { readonly assignments: readonly Assignment[] }

/** Decides which Worker gets which Run; then, by what is left, how many workers each pool should have. */
export function decideDispatch(input: DispatchInput): DispatchDecision {
  const { inventory, pools, starts, nowMs } = input
  const assignments = decidePlacement(input)
  return { ...decidePools({ demand: demandOf(input), inventory, pools, starts, nowMs }), assignments }
}

function demandOf({ queue, pools, inventory, workerTemplates }: DispatchInput): Map<string, PoolDemand> {
  const classesByPool = Map.groupBy(queue.equivalenceClasses(), ({ requirements }) => requirements.pool)
  if (classesByPool.size === 0) return new Map()
  return new Map(
    pools.map(({ metadata: { name }, spec }) => {
      const { max = 4, slots = 1 } = spec
      const classes = (classesByPool.get(name) ?? []).filter(({ requirements }) =>
        wouldNewWorkerFit(requirements, inventory, workerTemplates.get(name)),
      )
      const startable = countStartable(queue, name, classes, Math.max(1, max) * slots)
      return [name, { queued: queue.queuedIn(name), startable }] as const
    }),
  )
}

/** Whether one more of the Workers of a pool, as they are or as the last one was, would do. One of which none will do helps nobody. */
function wouldNewWorkerFit(requirements: Requirements, inventory: WorkerInventory, template: Worker | undefined): boolean {
  const mayFit = (worker: Worker, engines: Engines) =>
    !hasReportedCapabilities(worker, requirements) || unmetRequirement(requirements, worker, engines) === undefined
  const isRegistered = ({ status }: Worker) => status !== undefined
  if (!inventory.some(requirements.pool, isRegistered)) {
    return template === undefined || mayFit(template, new Set(Object.keys(template.status?.engines ?? {})))
  }
  const engines = inventory.engines(requirements.pool)
  return inventory.some(requirements.pool, worker => isRegistered(worker) && mayFit(worker, engines))
}

/** A Worker that has just registered may not have found out yet what it has: what it will not do for is not known. */
function hasReportedCapabilities({ status }: Worker, { isolation }: Requirements): boolean {
  if (isolation !== undefined && status?.isolation && !status.isolation.includes(isolation)) return true
  return status?.engines !== undefined && (isolation === undefined || status.isolation !== undefined)
}
