import { type EquivalenceClass, isOlder, type QueueEntry, type RunQueue } from '../queue/index.ts'
import type { WorkerInventory } from './worker-inventory.ts'

export type PlacementInput = {
  /** The Runs that get a Worker are taken out of it, and counted as running. */
  readonly queue: RunQueue
  /** Kept from decision to decision. */
  readonly state: SchedulerState
  /** The slots that are given away are taken from it. */
  readonly inventory: WorkerInventory
  /** What a Run would find in a Worker's caches; undefined: nothing. */
  readonly cacheKeyOf?: (runKey: string) => string | undefined
  /** At most so many at once. Default: all. */
  readonly limit?: number
  readonly nowMs: number
}

export type Assignment = { readonly key: string; readonly namespace: string; readonly worker: string; readonly pool: string }

export class SchedulerState {
  /** By pool: how many Runs were placed, modulo {@link starvedEvery}. */
  readonly placementCounts = new Map<string, number>()
  /** By pool: the Worker that is kept free for a Run that is overdue and needs more of it than is left. */
  readonly reservations = new Map<string, { readonly key: string; readonly worker: string }>()
}

/** A Run that has waited for so long is overdue. */
export const starvedAfterMs = 10 * 60_000

/**
 * Of so many placements of a pool at least one goes to the oldest Run that is overdue. So a Run that is overdue, that no
 * limit holds back and that a Worker would do for, starts within `overdueEvery · (n + 1)` placements of its pool, where n is
 * how many older ones wait there: nobody starves, whatever class, weight or priority the others have. Where no Worker has
 * enough cpu or memory left for the oldest one that is overdue, the one with the fewest Runs gets no others until it has.
 */
export const starvedEvery = 8

/** Decides which Runs get which Workers, one after the other: each time the one whose turn it is among those that can go. */
export function decidePlacement(input: PlacementInput): Assignment[] {
  const { queue, state, inventory, cacheKeyOf, limit = Infinity, nowMs } = input
  const { placementCounts } = state
  inventory.beginCycle()
  const assignments: Assignment[] = []
  const assign = ({ request: { key, namespace, requirements, concurrency } }: QueueEntry, worker: string) => {
    const { pool } = requirements
    assignments.push({ key, namespace, worker, pool })
    placementCounts.set(pool, ((placementCounts.get(pool) ?? 0) + 1) % starvedEvery)
    queue.start({ key, namespace, pool, concurrencyKey: concurrency?.key, sinceMs: nowMs })
  }
  reserveForStarved(input, assign)
  const candidates = new Set<EquivalenceClass>()
  for (const equivalenceClass of queue.equivalenceClasses())
    if (inventory.hasFit(equivalenceClass.requirements)) candidates.add(equivalenceClass)

  while (assignments.length < limit) {
    const next = nextEntry(queue, candidates)
    if (!next) break
    const { pool } = next.request.requirements
    const isStarvedTurn = (placementCounts.get(pool) ?? 0) % starvedEvery === starvedEvery - 1
    const entry = (isStarvedTurn ? oldestStarved(queue, candidates, pool, nowMs) : undefined) ?? next
    const { request, fifo } = entry
    const worker = inventory.assign(request.requirements, cacheKeyOf?.(request.key))
    if (!worker) {
      candidates.delete(fifo.tenantQueue.equivalenceClass)
      continue
    }
    assign(entry, worker)
  }
  return assignments
}

/** Looks after the Workers that are kept: gives them away when their Run fits, and chooses one where a Run needs that. */
function reserveForStarved({ queue, state, inventory, nowMs }: PlacementInput, assign: (entry: QueueEntry, worker: string) => void): void {
  for (const [pool, { key, worker }] of state.reservations) {
    const entry = queue.find(key)
    const isOpen = entry && !queue.poolLimitReached(pool) && !queue.limitReached(entry.fifo)
    const given = isOpen ? inventory.assignTo(worker, entry.request.requirements) : undefined
    if (entry && given !== undefined) assign(entry, given)
    if (!isOpen || given !== undefined || !inventory.reserve(pool, worker)) state.reservations.delete(pool)
  }
  const nominations = new Map<string, { entry: QueueEntry; worker: string }>()
  for (const equivalenceClass of queue.equivalenceClasses()) {
    const { pool, cpuMillis, memoryBytes } = equivalenceClass.requirements
    const entry = queue.oldest(equivalenceClass)
    if (!entry || nowMs - entry.request.sinceMs < starvedAfterMs || state.reservations.has(pool) || queue.poolLimitReached(pool)) continue
    if (cpuMillis + memoryBytes === 0 || inventory.hasFit(equivalenceClass.requirements)) continue
    const other = nominations.get(pool)
    if (other && isOlder(other.entry.request, entry.request)) continue
    const worker = inventory.nominate(equivalenceClass.requirements)
    if (worker !== undefined) nominations.set(pool, { entry, worker })
  }
  for (const [pool, { entry, worker }] of nominations) {
    state.reservations.set(pool, { key: entry.request.key, worker })
    inventory.reserve(pool, worker)
  }
}

function nextEntry(queue: RunQueue, candidates: ReadonlySet<EquivalenceClass>): QueueEntry | undefined {
  let best: QueueEntry | undefined
  for (const equivalenceClass of candidates) {
    if (queue.poolLimitReached(equivalenceClass.requirements.pool)) continue
    const entry = queue.next(equivalenceClass)
    if (entry && (!best || precedes(entry, best))) best = entry
  }
  return best
}

/** As within a shape: class, then usage for the weight; of one tenant priority, then age; at last age. */
function precedes({ request: a, fifo: aLane }: QueueEntry, { request: b, fifo: bLane }: QueueEntry): boolean {
  if (a.rank !== b.rank) return a.rank < b.rank
  const [one, other] = [aLane.tenantQueue.account, bLane.tenantQueue.account]
  if (one === other && a.priority !== b.priority) return a.priority > b.priority
  const [left, right] = [one.usage / one.weight, other.usage / other.weight]
  return left !== right ? left < right : isOlder(a, b)
}

function oldestStarved(queue: RunQueue, candidates: ReadonlySet<EquivalenceClass>, pool: string, nowMs: number): QueueEntry | undefined {
  let oldest: QueueEntry | undefined
  for (const equivalenceClass of candidates) {
    if (equivalenceClass.requirements.pool !== pool) continue
    const entry = queue.oldest(equivalenceClass)
    if (entry && (!oldest || isOlder(entry.request, oldest.request))) oldest = entry
  }
  return oldest && nowMs - oldest.request.sinceMs >= starvedAfterMs ? oldest : undefined
}
