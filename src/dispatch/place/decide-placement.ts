import type { Worker } from '../../api/index.ts'
import { type Entry, isOlder, type RunQueue, type Shape } from '../queue/index.ts'
import type { WorkerLoads } from '../worker-load.ts'
import { FreeWorkers } from './free-workers.ts'

export type PlacementInput = {
  /** The Runs that get a Worker are taken out of it, and counted as running. */
  readonly queue: RunQueue
  /** Turns of each pool, kept from decision to decision. */
  readonly turns: Turns
  readonly workers: readonly Worker[]
  readonly load: WorkerLoads
  /** What a Run would find in a Worker's caches; undefined: nothing. */
  readonly cacheKeyOf?: (runKey: string) => string | undefined
  /** At most so many at once. Default: all. */
  readonly limit?: number
  readonly nowMs: number
  /** 0 ≤ x < 1; for sampling large pools. */
  readonly random: () => number
}

export type Assignment = { readonly key: string; readonly namespace: string; readonly worker: string; readonly pool: string }

/** By pool: how many Runs were placed. Only its remainder by {@link overdueEvery} matters. */
export type Turns = Map<string, number>

/** A Run that has waited for so long is overdue. */
export const overdueAfterMs = 10 * 60_000

/**
 * Of so many placements of a pool at least one goes to the oldest Run that is overdue. So a Run that is overdue, that no
 * limit holds back and that a Worker would do for, starts within `overdueEvery · (n + 1)` placements of its pool, where n is
 * how many older ones wait there: nobody starves, whatever class, weight or priority the others have.
 */
export const overdueEvery = 8

/** Decides which Runs get which Workers, one after the other: each time the one whose turn it is among those that can go. */
export function decidePlacement(input: PlacementInput): Assignment[] {
  const { queue, turns, workers, load, cacheKeyOf, limit = Infinity, nowMs, random } = input
  const free = new FreeWorkers(workers, load, random)
  const assignments: Assignment[] = []
  const candidates = new Set<Shape>()
  for (const shape of queue.shapes()) if (free.has(shape.needs)) candidates.add(shape)

  while (assignments.length < limit) {
    const turn = whoseTurn(queue, candidates)
    if (!turn) break
    const { pool } = turn.request.needs
    const isOverdueTurn = (turns.get(pool) ?? 0) % overdueEvery === overdueEvery - 1
    const entry = (isOverdueTurn ? overdue(queue, candidates, pool, nowMs) : undefined) ?? turn
    const { request, lane } = entry
    const worker = free.take(request.needs, cacheKeyOf?.(request.key))
    if (!worker) {
      candidates.delete(lane.queue.shape)
      continue
    }
    assignments.push({ key: request.key, namespace: request.namespace, worker: worker.metadata.name, pool })
    turns.set(pool, ((turns.get(pool) ?? 0) + 1) % overdueEvery)
    const { key, namespace, concurrency } = request
    queue.start({ key, namespace, pool, concurrencyKey: concurrency?.key, sinceMs: nowMs })
  }
  return assignments
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
