import { type Entry, isOlder, type RunQueue, type Shape } from '../queue/index.ts'
import type { WorkerInventory } from './worker-inventory.ts'

export type PlacementInput = {
  /** The Runs that get a Worker are taken out of it, and counted as running. */
  readonly queue: RunQueue
  /** Kept from decision to decision. */
  readonly memory: SchedulerState
  /** The slots that are given away are taken from it. */
  readonly hands: WorkerInventory
  /** What a Run would find in a Worker's caches; undefined: nothing. */
  readonly cacheKeyOf?: (runKey: string) => string | undefined
  /** At most so many at once. Default: all. */
  readonly limit?: number
  readonly nowMs: number
}

export type Assignment = { readonly key: string; readonly namespace: string; readonly worker: string; readonly pool: string }

export class SchedulerState {
  /** By pool: how many Runs were placed, modulo {@link overdueEvery}. */
  readonly turns = new Map<string, number>()
  /** By pool: the Worker that is kept free for a Run that is overdue and needs more of it than is left. */
  readonly kept = new Map<string, { readonly key: string; readonly worker: string }>()
}

/** A Run that has waited for so long is overdue. */
export const overdueAfterMs = 10 * 60_000

/**
 * Of so many placements of a pool at least one goes to the oldest Run that is overdue. So a Run that is overdue, that no
 * limit holds back and that a Worker would do for, starts within `overdueEvery · (n + 1)` placements of its pool, where n is
 * how many older ones wait there: nobody starves, whatever class, weight or priority the others have. Where no Worker has
 * enough cpu or memory left for the oldest one that is overdue, the one with the fewest Runs gets no others until it has.
 */
export const overdueEvery = 8

/** Decides which Runs get which Workers, one after the other: each time the one whose turn it is among those that can go. */
export function decidePlacement(input: PlacementInput): Assignment[] {
  const { queue, memory, hands, cacheKeyOf, limit = Infinity, nowMs } = input
  const { turns } = memory
  hands.begin()
  const assignments: Assignment[] = []
  const place = ({ request: { key, namespace, needs, concurrency } }: Entry, worker: string) => {
    const { pool } = needs
    assignments.push({ key, namespace, worker, pool })
    turns.set(pool, ((turns.get(pool) ?? 0) + 1) % overdueEvery)
    queue.start({ key, namespace, pool, concurrencyKey: concurrency?.key, sinceMs: nowMs })
  }
  reserveForStarved(input, place)
  const candidates = new Set<Shape>()
  for (const shape of queue.shapes()) if (hands.has(shape.needs)) candidates.add(shape)

  while (assignments.length < limit) {
    const turn = whoseTurn(queue, candidates)
    if (!turn) break
    const { pool } = turn.request.needs
    const isOverdueTurn = (turns.get(pool) ?? 0) % overdueEvery === overdueEvery - 1
    const entry = (isOverdueTurn ? overdue(queue, candidates, pool, nowMs) : undefined) ?? turn
    const { request, lane } = entry
    const worker = hands.take(request.needs, cacheKeyOf?.(request.key))
    if (!worker) {
      candidates.delete(lane.queue.shape)
      continue
    }
    place(entry, worker)
  }
  return assignments
}

/** Looks after the Workers that are kept: gives them away when their Run fits, and chooses one where a Run needs that. */
function reserveForStarved({ queue, memory, hands, nowMs }: PlacementInput, place: (entry: Entry, worker: string) => void): void {
  for (const [pool, { key, worker }] of memory.kept) {
    const entry = queue.find(key)
    const isOpen = entry && !queue.poolHold(pool) && !queue.laneHold(entry.lane)
    const given = isOpen ? hands.takeFrom(worker, entry.request.needs) : undefined
    if (entry && given !== undefined) place(entry, given)
    if (!isOpen || given !== undefined || !hands.withhold(pool, worker)) memory.kept.delete(pool)
  }
  const stuck = new Map<string, { entry: Entry; worker: string }>()
  for (const shape of queue.shapes()) {
    const { pool, cpuMillis, memoryBytes } = shape.needs
    const entry = queue.oldest(shape)
    if (!entry || nowMs - entry.request.sinceMs < overdueAfterMs || memory.kept.has(pool) || queue.poolHold(pool)) continue
    if (cpuMillis + memoryBytes === 0 || hands.has(shape.needs)) continue
    const other = stuck.get(pool)
    if (other && isOlder(other.entry.request, entry.request)) continue
    const worker = hands.promising(shape.needs)
    if (worker !== undefined) stuck.set(pool, { entry, worker })
  }
  for (const [pool, { entry, worker }] of stuck) {
    memory.kept.set(pool, { key: entry.request.key, worker })
    hands.withhold(pool, worker)
  }
}

function whoseTurn(queue: RunQueue, candidates: ReadonlySet<Shape>): Entry | undefined {
  let best: Entry | undefined
  for (const shape of candidates) {
    if (queue.poolHold(shape.needs.pool)) continue
    const entry = queue.next(shape)
    if (entry && (!best || goesFirst(entry, best))) best = entry
  }
  return best
}

/** As within a shape: class, then usage for the weight; of one tenant priority, then age; at last age. */
function goesFirst({ request: a, lane: aLane }: Entry, { request: b, lane: bLane }: Entry): boolean {
  if (a.rank !== b.rank) return a.rank < b.rank
  const [one, other] = [aLane.queue.account, bLane.queue.account]
  if (one === other && a.priority !== b.priority) return a.priority > b.priority
  const [left, right] = [one.usage / one.weight, other.usage / other.weight]
  return left !== right ? left < right : isOlder(a, b)
}

function overdue(queue: RunQueue, candidates: ReadonlySet<Shape>, pool: string, nowMs: number): Entry | undefined {
  let oldest: Entry | undefined
  for (const shape of candidates) {
    if (shape.needs.pool !== pool) continue
    const entry = queue.oldest(shape)
    if (entry && (!oldest || isOlder(entry.request, oldest.request))) oldest = entry
  }
  return oldest && nowMs - oldest.request.sinceMs >= overdueAfterMs ? oldest : undefined
}
