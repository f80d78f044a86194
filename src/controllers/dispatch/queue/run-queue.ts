import { defaults, priorityClasses } from '../../../api/index.ts'
import { UsageScale } from './decayed-usage.ts'
import { type Account, type Entry, type Lane, makeLane, makeShape, makeTenantQueue, type Shape, type TenantQueue } from './lanes.ts'
import { isSameRequest, type RunRequest } from './run-request.ts'
import { TenantIndex } from './tenants.ts'

export type RunQueueOptions = {
  /** After so long half of what a tenant used is forgotten. Default: 15 minutes. */
  readonly halfLifeMs?: number | undefined
  /** Never more Runs at once, over all pools. Default: no limit. */
  readonly maxRunning?: number | undefined
  /** The present; to be given where it is told of Runs that ended days ago. Default: when the first Run it is told of began, or ended. */
  readonly nowMs?: number | undefined
}

/** A Run that has a Worker. `chargedMs` was charged at `chargedAtMs`, as a guess until it is known how long it takes. */
type Running = {
  account: Account
  readonly pool: string
  readonly concurrencyKey: string | undefined
  readonly sinceMs: number
  chargedMs: number
  chargedAtMs: number
}

/** What a Run is charged when it starts, in milliseconds of a slot; corrected when it ends, or runs for longer. */
export const expectedRunMs = 60_000

/**
 * The Runs that wait, ranked, and the count of those that run: what decides whose turn it is. A state machine without I/O
 * and clock: `put` what waits, `start` what got a Worker, `end` what ended; then {@link RunQueue.next} is whose turn it is
 * among Runs of a shape, in O(log n), because time alone never changes the order (see {@link UsageScale}).
 *
 * Order: class; then the tenant with the least decayed usage for its weight; within a tenant priority, then age. A Run that
 * a limit holds back is skipped, and nothing behind it waits for it.
 */
export class RunQueue {
  readonly #scale: UsageScale
  readonly #maxRunning: number
  readonly #shapes = new Map<string, Shape>()
  readonly #entries = new Map<string, Entry>()
  readonly #accounts = new Map<string, Account>()
  readonly #running = new Map<string, Running>()
  readonly #poolRunning = new Map<string, number>()
  readonly #keyRunning = new Map<string, number>()
  readonly #lanesOfKey = new Map<string, Set<Lane>>()
  readonly #poolQueued = new Map<string, number>()
  #poolLimits: ReadonlyMap<string, number> = new Map()
  #tenants = new TenantIndex()

  constructor({ halfLifeMs = defaults.fairShareHalfLifeMs, maxRunning = Infinity, nowMs }: RunQueueOptions = {}) {
    this.#scale = new UsageScale(halfLifeMs, nowMs)
    this.#maxRunning = maxRunning
  }

  /** Runs that wait. */
  get size(): number {
    return this.#entries.size
  }

  get running(): number {
    return this.#running.size
  }

  shapes(): Iterable<Shape> {
    return this.#shapes.values()
  }

  accounts(): Iterable<Account> {
    return this.#accounts.values()
  }

  /** The Run, if it waits. */
  find(key: string): Entry | undefined {
    return this.#entries.get(key)
  }

  /** Runs of the pool that wait. */
  queuedIn(pool: string): number {
    return this.#poolQueued.get(pool) ?? 0
  }

  runningIn(pool: string): number {
    return this.#poolRunning.get(pool) ?? 0
  }

  tenantOf(namespace: string): string {
    return this.#tenants.tenantOf(namespace)
  }

  /** What the tenant used lately, in milliseconds of a slot, decayed to `nowMs`. */
  usageMs(account: Account, nowMs: number): number {
    return this.#scale.usageMs(account.usage, nowMs)
  }

  /** Scaled cost of one more Run started at `nowMs`: what {@link Account.usage} rises by. */
  costOfStart(nowMs: number): number {
    return this.#scale.scaled(expectedRunMs, nowMs)
  }

  /** By pool: never more Runs at once. Pools that are missing have no limit. */
  setPoolLimits(limits: ReadonlyMap<string, number>): void {
    this.#poolLimits = limits
  }

  poolLimit(pool: string): number {
    return this.#poolLimits.get(pool) ?? Infinity
  }

  /** Takes over who belongs to which tenant, and their terms. What is queued and running keeps its place in time. */
  setTenants(tenants: TenantIndex): void {
    this.#rebuild(() => {
      this.#tenants = tenants
      for (const account of this.#accounts.values()) Object.assign(account, tenants.termsOf(account.name))
      for (const [key, run] of this.#running) {
        const account = this.#account(tenants.tenantOf(namespaceOf(key)))
        if (account === run.account) continue
        this.#count(run, -1)
        run.account = account
        this.#count(run, 1)
      }
    })
  }

  /** The Run waits. Called again for one that waits already, it moves to where it belongs now. */
  put(request: RunRequest): void {
    const old = this.#entries.get(request.key)
    if (old && isSameRequest(old.request, request)) return
    if (old) this.remove(request.key)
    const shape = this.#shape(request)
    const account = this.#account(this.#tenants.tenantOf(request.namespace))
    const lane = this.#lane(shape, account, request)
    const entry: Entry = { request: old ? { ...request, order: old.request.order } : request, lane }
    this.#entries.set(request.key, entry)
    lane.runs.put(entry)
    // Behind others of its lane it changes nothing above.
    if (lane.runs.peek() === entry) this.#refreshLane(lane)
    shape.size++
    account.queued++
    add(this.#poolQueued, request.needs.pool, 1)
  }

  /** The Run does not wait any more; one that does not is ignored. */
  remove(key: string): void {
    const entry = this.#entries.get(key)
    if (!entry) return
    const { lane, request } = entry
    const { queue } = lane
    const { account, shape } = queue
    this.#entries.delete(key)
    if (lane.runs.peek() === entry) this.#takeOut(lane, () => lane.runs.delete(entry))
    else lane.runs.delete(entry)
    shape.size--
    account.queued--
    add(this.#poolQueued, request.needs.pool, -1)
    if (lane.runs.size === 0) this.#dropLane(lane)
  }

  /** The Run has a Worker since `sinceMs`. It counts against the limits, and its tenant is charged a guess of its cost. */
  start(run: { key: string; namespace: string; pool: string; concurrencyKey: string | undefined; sinceMs: number }): void {
    if (this.#running.has(run.key)) return
    this.remove(run.key)
    const account = this.#account(this.#tenants.tenantOf(run.namespace))
    const { pool, concurrencyKey, sinceMs } = run
    const running: Running = { account, pool, concurrencyKey, sinceMs, chargedMs: expectedRunMs, chargedAtMs: sinceMs }
    this.#running.set(run.key, running)
    this.#charge(account, this.#scale.scaled(expectedRunMs, sinceMs))
    this.#count(running, 1)
  }

  /** The Run has ended at `atMs`: what its tenant was charged becomes what it took. Unknown ones are ignored. */
  end(key: string, atMs: number): void {
    const run = this.#running.get(key)
    if (!run) return
    this.#running.delete(key)
    this.#settle(run, atMs, Math.max(0, atMs - run.sinceMs))
    this.#count(run, -1)
  }

  /** The Run did not get its Worker after all: nothing is charged. `put` it again if it waits on. */
  giveBack(key: string): void {
    const run = this.#running.get(key)
    if (!run) return
    this.#running.delete(key)
    this.#charge(run.account, -this.#scale.scaled(run.chargedMs, run.chargedAtMs))
    this.#count(run, -1)
  }

  isRunning(key: string): boolean {
    return this.#running.has(key)
  }

  /** Charges a tenant for a Run that ended before this queue was made. */
  remember(namespace: string, tookMs: number, endedAtMs: number): void {
    this.#charge(this.#account(this.#tenants.tenantOf(namespace)), this.#scale.scaled(Math.max(0, tookMs), endedAtMs))
  }

  /**
   * Keeps the books in order; call it every half a minute or so. Runs that take longer than was guessed are charged what they
   * took so far, accounts without Runs and without usage to speak of are forgotten (invariant 10).
   */
  tick(nowMs: number): void {
    for (const run of this.#running.values()) {
      const tookMs = nowMs - run.sinceMs
      if (tookMs > run.chargedMs) this.#settle(run, nowMs, tookMs)
    }
    const factor = this.#scale.rebase(nowMs)
    if (factor !== undefined) {
      this.#rebuild(() => {
        for (const account of this.#accounts.values()) account.usage *= factor
      })
    }
    for (const account of this.#accounts.values()) {
      if (account.queued + account.running === 0 && this.usageMs(account, nowMs) < 1_000) this.#accounts.delete(account.name)
    }
  }

  /** Which limit holds every Run of the pool back, if one does. */
  poolHold(pool: string): 'GlobalLimit' | 'PoolLimit' | undefined {
    if (this.#running.size >= this.#maxRunning) return 'GlobalLimit'
    return this.runningIn(pool) >= this.poolLimit(pool) ? 'PoolLimit' : undefined
  }

  get maxRunning(): number {
    return this.#maxRunning
  }

  isAtLimit({ running, maxRunning }: Account): boolean {
    return running >= maxRunning
  }

  /** Which limit holds the Runs of the lane back, if one does. */
  laneHold({ queue, key, limit }: Lane): 'TenantLimit' | 'ConcurrencyKey' | undefined {
    if (this.isAtLimit(queue.account)) return 'TenantLimit'
    return key !== undefined && (this.#keyRunning.get(key) ?? 0) >= limit ? 'ConcurrencyKey' : undefined
  }

  /** How many Runs with the lane's key are running. */
  keyRunning({ key }: Lane): number {
    return key === undefined ? 0 : (this.#keyRunning.get(key) ?? 0)
  }

  /** Whose turn it is in the shape, as far as no limit holds it back. */
  next(shape: Shape): Entry | undefined {
    for (const { open } of shape.classes) {
      const queue = open.peek()
      if (queue) return queue.lanes.peek()?.runs.peek()
    }
    return undefined
  }

  /** The oldest Run of the shape that no limit holds back. */
  oldest(shape: Shape): Entry | undefined {
    return shape.oldest.peek()?.oldest.peek()?.runs.peek()
  }

  // ---- books

  #account(name: string): Account {
    let account = this.#accounts.get(name)
    if (!account) {
      account = { name, ...this.#tenants.termsOf(name), usage: 0, running: 0, queued: 0, queues: new Set() }
      this.#accounts.set(name, account)
    }
    return account
  }

  #charge(account: Account, scaledCost: number): void {
    // Taking back what was added leaves a rounding error at most.
    account.usage = Math.max(0, account.usage + scaledCost)
    for (const queue of account.queues) if (isOpen(queue)) queue.tenantClass.open.put(queue)
  }

  #settle(run: Running, atMs: number, tookMs: number): void {
    this.#charge(run.account, this.#scale.scaled(tookMs, atMs) - this.#scale.scaled(run.chargedMs, run.chargedAtMs))
    run.chargedMs = tookMs
    run.chargedAtMs = atMs
  }

  /** Counts a running Run in or out; lanes and tenants that a limit holds back, or not any more, follow. */
  #count({ account, pool, concurrencyKey }: Running, by: 1 | -1): void {
    account.running += by
    add(this.#poolRunning, pool, by)
    for (const queue of account.queues) this.#refreshQueue(queue)
    if (concurrencyKey === undefined) return
    const key = keyId(account.name, concurrencyKey)
    add(this.#keyRunning, key, by)
    for (const lane of this.#lanesOfKey.get(key) ?? []) this.#refreshLane(lane)
  }

  /** For changes of what everything is ordered by: all that waits is taken out before, and put in again. */
  #rebuild(change: () => void): void {
    const waiting = [...this.#entries.values()].map(({ request }) => request)
    for (const { key } of waiting) this.remove(key)
    change()
    for (const request of waiting) this.put(request)
  }

  // ---- the tree

  #shape(request: RunRequest): Shape {
    let shape = this.#shapes.get(request.shape)
    if (!shape) {
      shape = makeShape(request.shape, request.needs, priorityClasses.length)
      this.#shapes.set(request.shape, shape)
    }
    return shape
  }

  #lane(shape: Shape, account: Account, request: RunRequest): Lane {
    const tenantClass = shape.classes[request.rank]!
    let queue = tenantClass.all.get(account.name)
    if (!queue) {
      queue = makeTenantQueue(account, shape, tenantClass)
      tenantClass.all.set(account.name, queue)
      account.queues.add(queue)
    }
    const { priority, concurrency } = request
    const name = `${priority}/${concurrency?.limit ?? ''}/${concurrency?.key ?? ''}`
    let lane = queue.all.get(name)
    if (!lane) {
      const key = concurrency && keyId(account.name, concurrency.key)
      lane = makeLane(name, queue, request, key)
      queue.all.set(name, lane)
      if (key !== undefined) this.#lanesOfKey.set(key, (this.#lanesOfKey.get(key) ?? new Set()).add(lane))
    }
    return lane
  }

  /** Changes what heaps order by: the lane leaves them before, and comes back if it is open. */
  #takeOut(lane: Lane, change: () => void): void {
    const { queue } = lane
    queue.tenantClass.open.delete(queue)
    queue.shape.oldest.delete(queue)
    queue.lanes.delete(lane)
    queue.oldest.delete(lane)
    change()
    this.#refreshLane(lane)
  }

  #refreshLane(lane: Lane): void {
    const { queue } = lane
    const { key, limit } = lane
    const isLaneOpen = lane.runs.size > 0 && (key === undefined || (this.#keyRunning.get(key) ?? 0) < limit)
    if (isLaneOpen) {
      queue.lanes.put(lane)
      queue.oldest.put(lane)
    } else {
      queue.lanes.delete(lane)
      queue.oldest.delete(lane)
    }
    this.#refreshQueue(queue)
  }

  #refreshQueue(queue: TenantQueue): void {
    const { tenantClass, shape } = queue
    if (isOpen(queue)) {
      tenantClass.open.put(queue)
      shape.oldest.put(queue)
    } else {
      tenantClass.open.delete(queue)
      shape.oldest.delete(queue)
    }
  }

  #dropLane(lane: Lane): void {
    const { queue, key } = lane
    queue.all.delete(lane.name)
    if (key !== undefined) {
      const lanes = this.#lanesOfKey.get(key)
      lanes?.delete(lane)
      if (lanes?.size === 0) this.#lanesOfKey.delete(key)
    }
    if (queue.all.size > 0) return
    queue.tenantClass.all.delete(queue.account.name)
    queue.account.queues.delete(queue)
    if (queue.shape.size === 0) this.#shapes.delete(queue.shape.name)
  }
}

function isOpen({ lanes, account }: TenantQueue): boolean {
  return lanes.size > 0 && account.running < account.maxRunning
}

const keyId = (tenant: string, key: string) => `${tenant}/${key}`

const namespaceOf = (runKey: string) => runKey.slice(0, runKey.indexOf('/'))

function add(counts: Map<string, number>, key: string, by: number): void {
  const next = (counts.get(key) ?? 0) + by
  if (next === 0) counts.delete(key)
  else counts.set(key, next)
}
