import type { Worker } from '../../../api/index.ts'
import { type EquivalenceClass, isOlder, RunQueue, type RunQueueEntry, type RunQueueOptions, type RunRequest } from '../queue/index.ts'
import { WorkerInventory } from './worker-inventory.ts'

export type ScheduleOptions = {
  /** Keys of a Run in `status.caches` of Workers, the most valuable first. Default: no cache affinity. */
  readonly cacheKeysOf?: (runKey: string) => readonly string[] | undefined
  /** Maximum number of assignments. Default: no limit. */
  readonly limit?: number
  readonly nowMs: number
  /** 0 ≤ x < 1; for sampling large pools. */
  readonly random: () => number
}

export type Assignment = { readonly key: string; readonly namespace: string; readonly worker: string; readonly pool: string }

/** A Run that has been queued for this long is starved. */
export const starvedAfterMs = 10 * 60_000

/**
 * Of this many assignments in a pool at least one goes to the oldest starved Run. A starved Run that is eligible and fits a Worker therefore
 * starts within `starvedEvery · (n + 1)` assignments of its pool, where n is the number of older Runs queued there, whatever class, weight or
 * priority the others have. If no Worker has enough free cpu or memory for the oldest starved Run, the Worker with the fewest Runs is
 * reserved: it gets no other Runs until it has.
 */
export const starvedEvery = 8

/**
 * Assigns queued Runs to Workers. It owns the queue and the inventory: the caller reports to them which Runs and Workers there are, and
 * {@link schedule} records its assignments in both, before they are written.
 */
export class Scheduler {
  readonly queue: RunQueue
  readonly inventory: WorkerInventory
  /** By pool: number of assignments, modulo {@link starvedEvery}. */
  readonly #assignmentCounts = new Map<string, number>()
  /** By pool: the Worker that is reserved for a starved Run until it has enough free cpu and memory. */
  readonly #reservations = new Map<string, { readonly key: string; readonly worker: string }>()

  /** @param isPreferred as of {@link WorkerInventory}. */
  constructor({ isPreferred, ...options }: RunQueueOptions & { readonly isPreferred?: ((worker: Worker) => boolean) | undefined } = {}) {
    this.queue = new RunQueue(options)
    this.inventory = new WorkerInventory(isPreferred)
  }

  get reservations(): ReadonlyMap<string, { readonly key: string; readonly worker: string }> {
    return this.#reservations
  }

  /**
   * Assigns a new Run without queueing it. Returns its Worker; undefined if none fits, a limit blocks the Run, or an older one could be next: of its pool,
   * of its tenant, or any if the number of active Runs is limited.
   */
  assignNew(request: RunRequest, cacheKeys: readonly string[], nowMs: number, random: () => number): string | undefined {
    const { queue, inventory } = this
    const { key, namespace, requirements, concurrency } = request
    const { pool } = requirements
    if (queue.queuedIn(pool) > 0 || (queue.size > 0 && queue.maxRunning !== Number.POSITIVE_INFINITY) || queue.poolLimitReached(pool))
      return undefined
    const { fifo } = queue.put(request)
    const isBlocked = fifo.tenantQueue.account.queued > 1 || queue.limitReached(fifo) !== undefined
    const worker = isBlocked ? undefined : inventory.assign(requirements, cacheKeys, random, true)
    if (worker === undefined) queue.remove(key)
    else this.#start({ key, namespace, pool, concurrencyKey: concurrency?.key, sinceMs: nowMs })
    return worker
  }

  /** Assigns Runs one at a time: always the first eligible Run in queue order that fits a Worker. */
  schedule({ cacheKeysOf, limit = Number.POSITIVE_INFINITY, nowMs, random }: ScheduleOptions): Assignment[] {
    const { queue, inventory } = this
    inventory.beginCycle()
    const assignments: Assignment[] = []
    const assign = ({ request: { key, namespace, requirements, concurrency } }: RunQueueEntry, worker: string) => {
      const { pool } = requirements
      assignments.push({ key, namespace, worker, pool })
      this.#start({ key, namespace, pool, concurrencyKey: concurrency?.key, sinceMs: nowMs })
    }
    this.#reserveForStarved(assign, nowMs)
    const candidates = new Set<EquivalenceClass>()
    for (const equivalenceClass of queue.equivalenceClasses())
      if (inventory.hasFit(equivalenceClass.requirements)) candidates.add(equivalenceClass)

    while (assignments.length < limit) {
      const next = nextEntry(queue, candidates)
      if (!next) break
      const { pool } = next.request.requirements
      const isStarvedTurn = (this.#assignmentCounts.get(pool) ?? 0) === starvedEvery - 1
      const entry = (isStarvedTurn ? oldestStarved(queue, candidates, pool, nowMs) : undefined) ?? next
      const { request, fifo } = entry
      const worker = inventory.assign(request.requirements, cacheKeysOf?.(request.key) ?? [], random)
      if (!worker) {
        candidates.delete(fifo.tenantQueue.equivalenceClass)
        continue
      }
      assign(entry, worker)
    }
    return assignments
  }

  #start(run: Parameters<RunQueue['start']>[0]): void {
    this.#assignmentCounts.set(run.pool, ((this.#assignmentCounts.get(run.pool) ?? 0) + 1) % starvedEvery)
    this.queue.start(run)
  }

  /** Uses a reservation when its Run fits, drops it when its Run is no longer queued or its Worker was deleted, and reserves a Worker for a starved Run that fits none. */
  #reserveForStarved(assign: (entry: RunQueueEntry, worker: string) => void, nowMs: number): void {
    const { queue, inventory } = this
    for (const [pool, { key, worker }] of this.#reservations) {
      const entry = queue.find(key)
      const isEligible = entry && !queue.poolLimitReached(pool) && !queue.limitReached(entry.fifo)
      const assigned = isEligible ? inventory.assignTo(worker, entry.request.requirements) : undefined
      if (entry && assigned !== undefined) assign(entry, assigned)
      if (!isEligible || assigned !== undefined || !inventory.reserve(pool, worker)) this.#reservations.delete(pool)
    }
    const nominations = new Map<string, { entry: RunQueueEntry; worker: string }>()
    for (const equivalenceClass of queue.equivalenceClasses()) {
      const { pool, cpuMillis, memoryBytes } = equivalenceClass.requirements
      const entry = queue.oldest(equivalenceClass)
      if (!entry || nowMs - entry.request.sinceMs < starvedAfterMs || this.#reservations.has(pool) || queue.poolLimitReached(pool)) continue
      if (cpuMillis + memoryBytes === 0 || inventory.hasFit(equivalenceClass.requirements)) continue
      const other = nominations.get(pool)
      if (other && isOlder(other.entry.request, entry.request)) continue
      const worker = inventory.nominate(equivalenceClass.requirements)
      if (worker !== undefined) nominations.set(pool, { entry, worker })
    }
    for (const [pool, { entry, worker }] of nominations) {
      this.#reservations.set(pool, { key: entry.request.key, worker })
      inventory.reserve(pool, worker)
    }
  }
}

function nextEntry(queue: RunQueue, candidates: ReadonlySet<EquivalenceClass>): RunQueueEntry | undefined {
  let best: RunQueueEntry | undefined
  for (const equivalenceClass of candidates) {
    if (queue.poolLimitReached(equivalenceClass.requirements.pool)) continue
    const entry = queue.next(equivalenceClass)
    if (entry && (!best || precedes(entry, best))) best = entry
  }
  return best
}

/** The order within an equivalence class: priority class, then usage by weight; within one tenant priority, then age; finally age. */
function precedes({ request: a, fifo: aFifo }: RunQueueEntry, { request: b, fifo: bFifo }: RunQueueEntry): boolean {
  if (a.rank !== b.rank) return a.rank < b.rank
  const [one, other] = [aFifo.tenantQueue.account, bFifo.tenantQueue.account]
  if (one === other && a.priority !== b.priority) return a.priority > b.priority
  const [left, right] = [one.usage / one.weight, other.usage / other.weight]
  return left !== right ? left < right : isOlder(a, b)
}

function oldestStarved(queue: RunQueue, candidates: ReadonlySet<EquivalenceClass>, pool: string, nowMs: number): RunQueueEntry | undefined {
  let oldest: RunQueueEntry | undefined
  for (const equivalenceClass of candidates) {
    if (equivalenceClass.requirements.pool !== pool) continue
    const entry = queue.oldest(equivalenceClass)
    if (entry && (!oldest || isOlder(entry.request, oldest.request))) oldest = entry
  }
  return oldest && nowMs - oldest.request.sinceMs >= starvedAfterMs ? oldest : undefined
}
