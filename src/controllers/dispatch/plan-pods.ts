import type { Worker, WorkerPool } from '../../api/index.ts'
import type { WorkerInventory } from './placement/index.ts'
import { domainFailure, idleSinceMs, type PlannedWorkers, planWorkers, type StartState } from './pool/index.ts'
import { wouldNewWorkerFit } from './pool-demand.ts'
import { type RunQueue, startableInOrder } from './queue/index.ts'

export type PlanPodsInput = {
  readonly queue: RunQueue
  readonly inventory: WorkerInventory
  readonly pool: WorkerPool
  readonly starts: StartState | undefined
  readonly template: Worker | undefined
  /** Plans at least this many new workers, if Runs need them. */
  readonly count: number
  readonly nowMs: number
}

/** Plans the workers of a pool of mode Pod for the Runs that remain queued, in scheduling order. */
export function planPods({ queue, inventory, pool, starts, template, count, nowMs }: PlanPodsInput): PlannedWorkers {
  const { name } = pool.metadata
  const { slots = 1 } = pool.spec
  const idle = inventory.idle(name).map(({ metadata, spec }) => ({ name: metadata.name, trustDomain: spec.trustDomain }))
  const workers = [...idle, ...(starts?.starting ?? [])]
  const fits = new Map<unknown, boolean>()
  const probing = new Set<string>()
  const entries = startableInOrder(queue, name, (workers.length + count) * slots, nowMs).filter(({ fifo }) => {
    const { requirements } = fifo.tenantQueue.equivalenceClass
    const known = fits.get(requirements) ?? wouldNewWorkerFit(requirements, inventory, template)
    fits.set(requirements, known)
    return known && !isHeldBack(starts, requirements.trustDomain, probing, nowMs)
  })
  return planWorkers(entries, workers, slots)
}

/** After failed starts for a trust domain one Pod probes whether starting works again, once its backoff has ended. */
function isHeldBack(starts: StartState | undefined, domain: string | undefined, probing: Set<string>, nowMs: number): boolean {
  const failed = domainFailure(starts, domain)
  if (!failed || domain === undefined) return false
  if (nowMs < failed.notBeforeMs || probing.has(domain)) return true
  probing.add(domain)
  return false
}

/** When the backoff of a trust domain ends next; Infinity if none does. */
export function nextDomainMs(starts: StartState | undefined, nowMs: number): number {
  return Math.min(...[...(starts?.domains.values() ?? [])].map(({ notBeforeMs }) => notBeforeMs).filter(ms => ms > nowMs))
}

/** Whether workers of the pool may be unable to execute some of its Runs because of a trust domain. */
export function isDividedByTrustDomain({ queue, inventory, pool, starts }: Omit<PlanPodsInput, 'count' | 'nowMs' | 'template'>): boolean {
  const { name } = pool.metadata
  if (queue.queuedIn(name) === 0) return false
  for (const { requirements } of queue.equivalenceClasses())
    if (requirements.pool === name && requirements.trustDomain !== undefined) return true
  const isOfOne = ({ spec }: Worker) => spec.trustDomain !== undefined
  return inventory.some(name, isOfOne) || (starts?.starting.some(({ trustDomain }) => trustDomain !== undefined) ?? false)
}

/** Idle and starting workers that no queued Run can use, to make room for `count` that Runs need: idle ones first, the longest idle of them first. */
export function makeRoom(
  { inventory, pool, starts }: Pick<PlanPodsInput, 'inventory' | 'pool' | 'starts'>,
  unused: ReadonlySet<string>,
  count: number,
): { readonly drain: readonly string[]; readonly withdraw: readonly string[] } {
  const idle = inventory.idle(pool.metadata.name).sort((a, b) => idleSinceMs(a) - idleSinceMs(b))
  const drain = idle.flatMap(({ metadata: { name } }) => (unused.has(name) ? [name] : [])).slice(0, count)
  const starting = (starts?.starting ?? []).filter(({ name, trustDomain }) => trustDomain !== undefined && unused.has(name))
  return { drain, withdraw: starting.slice(0, count - drain.length).map(({ name }) => name) }
}
