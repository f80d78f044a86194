import { Heap } from '../../../kubernetes/util/index.ts'
import type { RunRequest } from './run-request.ts'

/**
 * The tree that the queue is ranked by. A Shape holds the Runs with the same needs, in three classes; a class holds tenants,
 * least usage first; a tenant holds lanes, highest priority first; a lane holds Runs with one priority and one
 * concurrencyKey, oldest first. What a limit holds back is not in the heaps above it, so nobody behind it waits for it.
 */
export type Shape = {
  readonly name: string
  readonly needs: RunRequest['needs']
  /** By rank ({@link RunRequest}). */
  readonly classes: readonly TenantClass[]
  /** Tenants' queues of all classes that are open, the one with the oldest Run first. */
  readonly oldest: Heap<TenantQueue>
  size: number
}

export type TenantClass = {
  readonly rank: number
  /** Those that are open: they have an open lane, and their tenant is not at its limit. */
  readonly open: Heap<TenantQueue>
  readonly all: Map<string, TenantQueue>
}

/** A tenant as the queue sees it. */
export type Account = {
  readonly name: string
  weight: number
  maxRunning: number
  /** Scaled by {@link UsageScale}. */
  usage: number
  running: number
  queued: number
  readonly queues: Set<TenantQueue>
}

/** The Runs of one tenant in one class of one shape. */
export type TenantQueue = {
  readonly account: Account
  readonly shape: Shape
  readonly tenantClass: TenantClass
  /** Open lanes in the order in which they go. */
  readonly lanes: Heap<Lane>
  /** Open lanes, the one with the oldest Run first. */
  readonly oldest: Heap<Lane>
  readonly all: Map<string, Lane>
}

export type Lane = {
  readonly name: string
  readonly queue: TenantQueue
  readonly priority: number
  /** The concurrencyKey as the ledger counts it, with its limit. */
  readonly key: string | undefined
  readonly limit: number
  readonly runs: Heap<Entry>
}

/** A Run that waits. */
export type Entry = { readonly request: RunRequest; readonly lane: Lane }

export function isOlder(a: RunRequest, b: RunRequest): boolean {
  if (a.sinceMs !== b.sinceMs) return a.sinceMs < b.sinceMs
  return a.order !== b.order ? a.order < b.order : a.uid < b.uid
}

/** Heads exist wherever a heap orders by them: what is empty is taken out before. */
const headOf = (lane: Lane): RunRequest => lane.runs.peek()!.request

export function goesBefore(a: Lane, b: Lane): boolean {
  return a.priority !== b.priority ? a.priority > b.priority : isOlder(headOf(a), headOf(b))
}

/** Least usage for its weight first; where that is equal, the one whose next Run is older. */
export function tenantGoesBefore(a: TenantQueue, b: TenantQueue): boolean {
  const [left, right] = [a.account.usage / a.account.weight, b.account.usage / b.account.weight]
  return left !== right ? left < right : isOlder(headOf(a.lanes.peek()!), headOf(b.lanes.peek()!))
}

export function makeShape(name: string, needs: RunRequest['needs'], ranks: number): Shape {
  const classes = Array.from({ length: ranks }, (_, rank) => ({
    rank,
    open: new Heap<TenantQueue>(tenantGoesBefore, { tracked: true }),
    all: new Map<string, TenantQueue>(),
  }))
  const oldest = new Heap<TenantQueue>((a, b) => isOlder(headOf(a.oldest.peek()!), headOf(b.oldest.peek()!)), { tracked: true })
  return { name, needs, classes, oldest, size: 0 }
}

export function makeTenantQueue(account: Account, shape: Shape, tenantClass: TenantClass): TenantQueue {
  const oldest = new Heap<Lane>((a, b) => isOlder(headOf(a), headOf(b)), { tracked: true })
  return { account, shape, tenantClass, lanes: new Heap<Lane>(goesBefore, { tracked: true }), oldest, all: new Map() }
}

export function makeLane(name: string, queue: TenantQueue, request: RunRequest, key: string | undefined): Lane {
  const runs = new Heap<Entry>((a, b) => isOlder(a.request, b.request), { tracked: true })
  return { name, queue, priority: request.priority, key, limit: request.concurrency?.limit ?? Infinity, runs }
}
