import { priorityClasses } from '../../../api/index.ts'
import { Heap } from '../../../kubernetes/util/index.ts'
import type { RunRequest } from './run-request.ts'

/**
 * The tree that orders the queue. An EquivalenceClass has the Runs with equal requirements, in three priority levels. A PriorityLevel has the
 * TenantQueues, least usage first. A TenantQueue has the FifoQueues, highest priority first. A FifoQueue has the Runs of one priority and one
 * concurrencyKey, oldest first. A node that a limit blocks is not in the heaps of its parent, so it delays nothing behind it.
 */
export type EquivalenceClass = {
  readonly name: string
  readonly requirements: RunRequest['requirements']
  /** By {@link RunRequest.rank}. */
  readonly levels: readonly PriorityLevel[]
  /** Eligible tenant queues of all levels, the one with the oldest Run first. */
  readonly oldest: Heap<TenantQueue>
  size: number
}

export type PriorityLevel = {
  readonly rank: number
  /** Those with an eligible FIFO queue whose tenant is below its limit. */
  readonly eligible: Heap<TenantQueue>
  readonly all: Map<string, TenantQueue>
}

/** Usage, limits and counts of one tenant. */
export type TenantAccount = {
  readonly name: string
  weight: number
  maxRunning: number
  /** Scaled by {@link UsageScale}. */
  usage: number
  running: number
  queued: number
  readonly tenantQueues: Set<TenantQueue>
}

/** The Runs of one tenant in one priority level of one equivalence class. */
export type TenantQueue = {
  readonly account: TenantAccount
  readonly equivalenceClass: EquivalenceClass
  readonly level: PriorityLevel
  /** Eligible FIFO queues in scheduling order. */
  readonly eligible: Heap<FifoQueue>
  /** Eligible FIFO queues, the one with the oldest Run first. */
  readonly oldest: Heap<FifoQueue>
  readonly all: Map<string, FifoQueue>
}

export type FifoQueue = {
  readonly name: string
  readonly tenantQueue: TenantQueue
  readonly priority: number
  /** The concurrencyKey, qualified by its tenant. */
  readonly concurrencyKey: string | undefined
  readonly limit: number
  readonly runs: Heap<RunQueueEntry>
}

/** A queued Run. */
export type RunQueueEntry = { readonly request: RunRequest; readonly fifo: FifoQueue }

/** Adds, removes and reorders nodes of the tree. It has no clock and no limits of pools; usage and counts are in the accounts. */
export class QueueTree {
  readonly #equivalenceClasses = new Map<string, EquivalenceClass>()
  readonly #fifosByConcurrencyKey = new Map<string, Set<FifoQueue>>()
  readonly #activeByConcurrencyKey: ReadonlyMap<string, number>

  /** @param activeByConcurrencyKey number of active Runs by {@link qualifiedKey}; call {@link refreshConcurrencyKey} after each change. */
  constructor(activeByConcurrencyKey: ReadonlyMap<string, number>) {
    this.#activeByConcurrencyKey = activeByConcurrencyKey
  }

  equivalenceClasses(): Iterable<EquivalenceClass> {
    return this.#equivalenceClasses.values()
  }

  add(request: RunRequest, account: TenantAccount): RunQueueEntry {
    const equivalenceClass = this.#equivalenceClass(request)
    const fifo = this.#fifo(equivalenceClass, account, request)
    const entry: RunQueueEntry = { request, fifo }
    fifo.runs.put(entry)
    // An entry behind others of its FIFO queue changes no order above it.
    if (fifo.runs.peek() === entry) this.#refreshFifo(fifo)
    equivalenceClass.size++
    account.queued++
    return entry
  }

  remove(entry: RunQueueEntry): void {
    const { fifo } = entry
    const { account, equivalenceClass } = fifo.tenantQueue
    if (fifo.runs.peek() === entry) this.#removeHead(fifo, entry)
    else fifo.runs.delete(entry)
    equivalenceClass.size--
    account.queued--
    if (fifo.runs.size === 0) this.#removeFifo(fifo)
  }

  /** To be called when the usage of the tenant has changed. */
  reorderAccount({ tenantQueues }: TenantAccount): void {
    for (const queue of tenantQueues) if (isEligible(queue)) queue.level.eligible.put(queue)
  }

  /** To be called when the number of active Runs of the tenant has changed. */
  refreshAccount({ tenantQueues }: TenantAccount): void {
    for (const queue of tenantQueues) this.#refreshTenantQueue(queue)
  }

  refreshConcurrencyKey(key: string): void {
    for (const fifo of this.#fifosByConcurrencyKey.get(key) ?? []) this.#refreshFifo(fifo)
  }

  isConcurrencyLimitReached({ concurrencyKey, limit }: FifoQueue): boolean {
    return concurrencyKey !== undefined && (this.#activeByConcurrencyKey.get(concurrencyKey) ?? 0) >= limit
  }

  #equivalenceClass({ equivalenceKey, requirements }: RunRequest): EquivalenceClass {
    let equivalenceClass = this.#equivalenceClasses.get(equivalenceKey)
    if (!equivalenceClass) {
      equivalenceClass = makeEquivalenceClass(equivalenceKey, requirements, priorityClasses.length)
      this.#equivalenceClasses.set(equivalenceKey, equivalenceClass)
    }
    return equivalenceClass
  }

  #fifo(equivalenceClass: EquivalenceClass, account: TenantAccount, request: RunRequest): FifoQueue {
    const level = equivalenceClass.levels[request.rank]!
    let queue = level.all.get(account.name)
    if (!queue) {
      queue = makeTenantQueue(account, equivalenceClass, level)
      level.all.set(account.name, queue)
      account.tenantQueues.add(queue)
    }
    const { priority, concurrency } = request
    const name = `${priority}/${concurrency?.limit ?? ''}/${concurrency?.key ?? ''}`
    let fifo = queue.all.get(name)
    if (!fifo) {
      const key = concurrency && qualifiedKey(account.name, concurrency.key)
      fifo = makeFifoQueue(name, queue, request, key)
      queue.all.set(name, fifo)
      if (key !== undefined) this.#fifosByConcurrencyKey.set(key, (this.#fifosByConcurrencyKey.get(key) ?? new Set()).add(fifo))
    }
    return fifo
  }

  /** The heaps above order by the head, so the FIFO queue is removed from them before its head changes, and added again if it is eligible. */
  #removeHead(fifo: FifoQueue, head: RunQueueEntry): void {
    const { tenantQueue } = fifo
    tenantQueue.level.eligible.delete(tenantQueue)
    tenantQueue.equivalenceClass.oldest.delete(tenantQueue)
    tenantQueue.eligible.delete(fifo)
    tenantQueue.oldest.delete(fifo)
    fifo.runs.delete(head)
    this.#refreshFifo(fifo)
  }

  #refreshFifo(fifo: FifoQueue): void {
    const { tenantQueue } = fifo
    if (fifo.runs.size > 0 && !this.isConcurrencyLimitReached(fifo)) {
      tenantQueue.eligible.put(fifo)
      tenantQueue.oldest.put(fifo)
    } else {
      tenantQueue.eligible.delete(fifo)
      tenantQueue.oldest.delete(fifo)
    }
    this.#refreshTenantQueue(tenantQueue)
  }

  #refreshTenantQueue(queue: TenantQueue): void {
    const { level, equivalenceClass } = queue
    if (isEligible(queue)) {
      level.eligible.put(queue)
      equivalenceClass.oldest.put(queue)
    } else {
      level.eligible.delete(queue)
      equivalenceClass.oldest.delete(queue)
    }
  }

  #removeFifo(fifo: FifoQueue): void {
    const { tenantQueue, concurrencyKey } = fifo
    tenantQueue.all.delete(fifo.name)
    if (concurrencyKey !== undefined) {
      const fifos = this.#fifosByConcurrencyKey.get(concurrencyKey)
      fifos?.delete(fifo)
      if (fifos?.size === 0) this.#fifosByConcurrencyKey.delete(concurrencyKey)
    }
    if (tenantQueue.all.size > 0) return
    tenantQueue.level.all.delete(tenantQueue.account.name)
    tenantQueue.account.tenantQueues.delete(tenantQueue)
    if (tenantQueue.equivalenceClass.size === 0) this.#equivalenceClasses.delete(tenantQueue.equivalenceClass.name)
  }
}

/** A concurrencyKey belongs to its tenant: equal keys of two tenants do not block each other. */
export const qualifiedKey = (tenant: string, concurrencyKey: string): string => `${tenant}/${concurrencyKey}`

export function isOlder(a: RunRequest, b: RunRequest): boolean {
  if (a.sinceMs !== b.sinceMs) return a.sinceMs < b.sinceMs
  return a.order !== b.order ? a.order < b.order : a.uid < b.uid
}

function isEligible({ eligible, account }: TenantQueue): boolean {
  return eligible.size > 0 && account.running < account.maxRunning
}

/** A heap never contains an empty FIFO queue, so there is always a head. */
const headOf = (fifo: FifoQueue): RunRequest => fifo.runs.peek()!.request

function fifoPrecedes(a: FifoQueue, b: FifoQueue): boolean {
  return a.priority !== b.priority ? a.priority > b.priority : isOlder(headOf(a), headOf(b))
}

/** Least usage by weight first; at equal usage the tenant whose next Run is older. */
function tenantPrecedes(a: TenantQueue, b: TenantQueue): boolean {
  const [left, right] = [a.account.usage / a.account.weight, b.account.usage / b.account.weight]
  return left !== right ? left < right : isOlder(headOf(a.eligible.peek()!), headOf(b.eligible.peek()!))
}

function makeEquivalenceClass(name: string, requirements: RunRequest['requirements'], ranks: number): EquivalenceClass {
  const levels = Array.from({ length: ranks }, (_, rank) => ({
    rank,
    eligible: new Heap<TenantQueue>(tenantPrecedes, { tracked: true }),
    all: new Map<string, TenantQueue>(),
  }))
  const oldest = new Heap<TenantQueue>((a, b) => isOlder(headOf(a.oldest.peek()!), headOf(b.oldest.peek()!)), { tracked: true })
  return { name, requirements, levels, oldest, size: 0 }
}

function makeTenantQueue(account: TenantAccount, equivalenceClass: EquivalenceClass, level: PriorityLevel): TenantQueue {
  const oldest = new Heap<FifoQueue>((a, b) => isOlder(headOf(a), headOf(b)), { tracked: true })
  return { account, equivalenceClass, level, eligible: new Heap<FifoQueue>(fifoPrecedes, { tracked: true }), oldest, all: new Map() }
}

function makeFifoQueue(name: string, tenantQueue: TenantQueue, request: RunRequest, concurrencyKey: string | undefined): FifoQueue {
  const runs = new Heap<RunQueueEntry>((a, b) => isOlder(a.request, b.request), { tracked: true })
  return { name, tenantQueue, priority: request.priority, concurrencyKey, limit: request.concurrency?.limit ?? Infinity, runs }
}
