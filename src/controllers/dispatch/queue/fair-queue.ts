import { Heap } from '../../../kubernetes/util/index.ts'
import type { RunRequest } from './run-request.ts'

/**
 * The tree that the queue is ranked by. A Shape holds the Runs with the same needs, in three classes; a class holds tenants,
 * least usage first; a tenant holds lanes, highest priority first; a lane holds Runs with one priority and one
 * concurrencyKey, oldest first. What a limit holds back is not in the heaps above it, so nobody behind it waits for it.
 */
export type EquivalenceClass = {
  readonly name: string
  readonly requirements: RunRequest['requirements']
  /** By rank ({@link RunRequest}). */
  readonly levels: readonly PriorityLevel[]
  /** Tenants' queues of all classes that are open, the one with the oldest Run first. */
  readonly oldest: Heap<TenantQueue>
  size: number
}

export type PriorityLevel = {
  readonly rank: number
  /** Those that are open: they have an open lane, and their tenant is not at its limit. */
  readonly eligible: Heap<TenantQueue>
  readonly all: Map<string, TenantQueue>
}

/** A tenant as the queue sees it. */
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

/** The Runs of one tenant in one class of one shape. */
export type TenantQueue = {
  readonly account: TenantAccount
  readonly equivalenceClass: EquivalenceClass
  readonly level: PriorityLevel
  /** Open lanes in the order in which they go. */
  readonly eligible: Heap<FifoQueue>
  /** Open lanes, the one with the oldest Run first. */
  readonly oldest: Heap<FifoQueue>
  readonly all: Map<string, FifoQueue>
}

export type FifoQueue = {
  readonly name: string
  readonly tenantQueue: TenantQueue
  readonly priority: number
  /** The concurrencyKey as the ledger counts it, with its limit. */
  readonly concurrencyKey: string | undefined
  readonly limit: number
  readonly runs: Heap<QueueEntry>
}

/** A Run that waits. */
export type QueueEntry = { readonly request: RunRequest; readonly fifo: FifoQueue }

export function isOlder(a: RunRequest, b: RunRequest): boolean {
  if (a.sinceMs !== b.sinceMs) return a.sinceMs < b.sinceMs
  return a.order !== b.order ? a.order < b.order : a.uid < b.uid
}

/** Heads exist wherever a heap orders by them: what is empty is taken out before. */
const headOf = (fifo: FifoQueue): RunRequest => fifo.runs.peek()!.request

export function precedes(a: FifoQueue, b: FifoQueue): boolean {
  return a.priority !== b.priority ? a.priority > b.priority : isOlder(headOf(a), headOf(b))
}

/** Least usage for its weight first; where that is equal, the one whose next Run is older. */
export function tenantPrecedes(a: TenantQueue, b: TenantQueue): boolean {
  const [left, right] = [a.account.usage / a.account.weight, b.account.usage / b.account.weight]
  return left !== right ? left < right : isOlder(headOf(a.eligible.peek()!), headOf(b.eligible.peek()!))
}

export function makeEquivalenceClass(name: string, requirements: RunRequest['requirements'], ranks: number): EquivalenceClass {
  const levels = Array.from({ length: ranks }, (_, rank) => ({
    rank,
    eligible: new Heap<TenantQueue>(tenantPrecedes, { tracked: true }),
    all: new Map<string, TenantQueue>(),
  }))
  const oldest = new Heap<TenantQueue>((a, b) => isOlder(headOf(a.oldest.peek()!), headOf(b.oldest.peek()!)), { tracked: true })
  return { name, requirements, levels, oldest, size: 0 }
}

export function makeTenantQueue(account: TenantAccount, equivalenceClass: EquivalenceClass, level: PriorityLevel): TenantQueue {
  const oldest = new Heap<FifoQueue>((a, b) => isOlder(headOf(a), headOf(b)), { tracked: true })
  return { account, equivalenceClass, level, eligible: new Heap<FifoQueue>(precedes, { tracked: true }), oldest, all: new Map() }
}

export function makeFifoQueue(name: string, tenantQueue: TenantQueue, request: RunRequest, concurrencyKey: string | undefined): FifoQueue {
  const runs = new Heap<QueueEntry>((a, b) => isOlder(a.request, b.request), { tracked: true })
  return { name, tenantQueue, priority: request.priority, concurrencyKey, limit: request.concurrency?.limit ?? Infinity, runs }
}
