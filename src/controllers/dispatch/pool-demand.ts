import { defaults, type Worker, type WorkerPool } from '../../api/index.ts'
import { type Engines, unmetRequirement, type WorkerInventory } from './placement/index.ts'
import type { PoolDemand } from './pool/index.ts'
import { countStartable, type Requirements, type RunQueue } from './queue/index.ts'

export type PoolDemandInput = {
  readonly queue: RunQueue
  readonly inventory: WorkerInventory
  readonly pools: Iterable<WorkerPool>
  /** By pool: its most recent Worker, which predicts the properties of the next one. */
  readonly workerTemplates: ReadonlyMap<string, Worker>
}

/** The Runs of each pool that remain queued after placement. Empty if no Run is queued. */
export function demandOf({ queue, pools, inventory, workerTemplates }: PoolDemandInput): Map<string, PoolDemand> {
  const demand = new Map<string, PoolDemand>()
  const classesByPool = Map.groupBy(queue.equivalenceClasses(), ({ requirements }) => requirements.pool)
  if (classesByPool.size === 0) return demand
  for (const { metadata, spec } of pools) {
    const { name } = metadata
    const { max = defaults.poolMax, slots = 1 } = spec
    const classes = (classesByPool.get(name) ?? []).filter(({ requirements }) =>
      wouldNewWorkerFit(requirements, inventory, workerTemplates.get(name)),
    )
    const startable = countStartable(queue, name, classes, Math.max(1, max) * slots)
    demand.set(name, { queued: queue.queuedIn(name), startable })
  }
  return demand
}

/**
 * Reports whether one more Worker of the pool could run a Run with these requirements, judging by its present Workers, or by the template if it
 * has none. A pool is not scaled up for Runs that its Workers cannot run.
 */
export function wouldNewWorkerFit(requirements: Requirements, inventory: WorkerInventory, template: Worker | undefined): boolean {
  if (requirements.violation !== undefined) return false
  const mayFit = (worker: Worker, engines: Engines) =>
    !hasReportedCapabilities(worker, requirements) || unmetRequirement(requirements, worker, engines) === undefined
  const isRegistered = ({ status }: Worker) => status !== undefined
  if (!inventory.some(requirements.pool, isRegistered)) {
    return template === undefined || mayFit(template, new Set(Object.keys(template.status?.engines ?? {})))
  }
  const engines = inventory.engines(requirements.pool)
  return inventory.some(requirements.pool, worker => isRegistered(worker) && mayFit(worker, engines))
}

/** A Worker that has just registered may not have detected its engines and isolation yet, so a mismatch would prove nothing. */
function hasReportedCapabilities({ status }: Worker, { isolation }: Requirements): boolean {
  if (isolation !== undefined && status?.isolation && !status.isolation.includes(isolation)) return true
  return status?.engines !== undefined && (isolation === undefined || status.isolation !== undefined)
}
