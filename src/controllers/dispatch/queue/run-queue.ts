import { defaults, priorityClasses } from '../../../api/index.ts'
import { UsageScale } from './decayed-usage.ts'
import {
  type EquivalenceClass,
  type FifoQueue,
  makeEquivalenceClass,
  makeFifoQueue,
  makeTenantQueue,
  type QueueEntry,
  type TenantAccount,
  type TenantQueue,
} from './fair-queue.ts'
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
type RunningRun = {
  account: TenantAccount
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
  readonly #equivalenceClasses = new Map<string, EquivalenceClass>()
  readonly #entries = new Map<string, QueueEntry>()
  readonly #accounts = new Map<string, TenantAccount>()
  readonly #running = new Map<string, RunningRun>()
  readonly #poolRunning = new Map<string, number>()
  readonly #keyRunning = new Map<string, number>()
  readonly #fifosByConcurrencyKey = new Map<string, Set<FifoQueue>>()
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

  equivalenceClasses(): Iterable<EquivalenceClass> {
    return this.#equivalenceClasses.values()
  }

  accounts(): Iterable<TenantAccount> {
    return this.#accounts.values()
  }

  /** The Run, if it waits. */
  find(key: string): QueueEntry | undefined {
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
  usageMs(account: TenantAccount, nowMs: number): number {
    return this.#scale.usageMs(account.usage, nowMs)
  }

  /** Scaled cost of one more Run started at `nowMs`: what {@link TenantAccount.usage} rises by. */
  scaledStartCost(nowMs: number): number {
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
      for (const account of this.#accounts.values()) Object.assign(account, tenants.settingsOf(account.name))
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
    const equivalenceClass = this.#equivalenceClass(request)
    const account = this.#account(this.#tenants.tenantOf(request.namespace))
    const fifo = this.#fifo(equivalenceClass, account, request)
    const entry: QueueEntry = { request: old ? { ...request, order: old.request.order } : request, fifo }
    this.#entries.set(request.key, entry)
    fifo.runs.put(entry)
    // Behind others of its lane it changes nothing above.
    if (fifo.runs.peek() === entry) this.#refreshFifo(fifo)
    equivalenceClass.size++
    account.queued++
    add(this.#poolQueued, request.requirements.pool, 1)
  }

  /** The Run does not wait any more; one that does not is ignored. */
  remove(key: string): void {
    const entry = this.#entries.get(key)
    if (!entry) return
    const { fifo, request } = entry
    const { tenantQueue } = fifo
    const { account, equivalenceClass } = tenantQueue
    this.#entries.delete(key)
    if (fifo.runs.peek() === entry) this.#reinsertAfter(fifo, () => fifo.runs.delete(entry))
    else fifo.runs.delete(entry)
    equivalenceClass.size--
    account.queued--
    add(this.#poolQueued, request.requirements.pool, -1)
    if (fifo.runs.size === 0) this.#removeFifo(fifo)
  }

  /** The Run has a Worker since `sinceMs`. It counts against the limits, and its tenant is charged a guess of its cost. */
  start(run: { key: string; namespace: string; pool: string; concurrencyKey: string | undefined; sinceMs: number }): void {
    if (this.#running.has(run.key)) return
    this.remove(run.key)
    const account = this.#account(this.#tenants.tenantOf(run.namespace))
    const { pool, concurrencyKey, sinceMs } = run
    const running: RunningRun = { account, pool, concurrencyKey, sinceMs, chargedMs: expectedRunMs, chargedAtMs: sinceMs }
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
  undoStart(key: string): void {
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
  chargePastRun(namespace: string, tookMs: number, endedAtMs: number): void {
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
  poolLimitReached(pool: string): 'GlobalLimit' | 'PoolLimit' | undefined {
    if (this.#running.size >= this.#maxRunning) return 'GlobalLimit'
    return this.runningIn(pool) >= this.poolLimit(pool) ? 'PoolLimit' : undefined
  }

  get maxRunning(): number {
    return this.#maxRunning
  }

  isAtLimit({ running, maxRunning }: TenantAccount): boolean {
    return running >= maxRunning
  }

  /** Which limit holds the Runs of the lane back, if one does. */
  limitReached({ tenantQueue, concurrencyKey, limit }: FifoQueue): 'TenantLimit' | 'ConcurrencyKey' | undefined {
    if (this.isAtLimit(tenantQueue.account)) return 'TenantLimit'
    return concurrencyKey !== undefined && (this.#keyRunning.get(concurrencyKey) ?? 0) >= limit ? 'ConcurrencyKey' : undefined
  }

  /** How many Runs with the lane's key are running. */
  runningWithKeyOf({ concurrencyKey }: FifoQueue): number {
    return concurrencyKey === undefined ? 0 : (this.#keyRunning.get(concurrencyKey) ?? 0)
  }

  /** Whose turn it is in the shape, as far as no limit holds it back. */
  next(equivalenceClass: EquivalenceClass): QueueEntry | undefined {
    for (const { eligible } of equivalenceClass.levels) {
      const queue = eligible.peek()
      if (queue) return queue.eligible.peek()?.runs.peek()
    }
    return undefined
  }

  /** The oldest Run of the shape that no limit holds back. */
  oldest(equivalenceClass: EquivalenceClass): QueueEntry | undefined {
    return equivalenceClass.oldest.peek()?.oldest.peek()?.runs.peek()
  }

  // ---- books

  #account(name: string): TenantAccount {
    let account = this.#accounts.get(name)
    if (!account) {
      account = { name, ...this.#tenants.settingsOf(name), usage: 0, running: 0, queued: 0, tenantQueues: new Set() }
      this.#accounts.set(name, account)
    }
    return account
  }

  #charge(account: TenantAccount, scaledCost: number): void {
    // Taking back what was added leaves a rounding error at most.
    account.usage = Math.max(0, account.usage + scaledCost)
    for (const queue of account.tenantQueues) if (isEligible(queue)) queue.level.eligible.put(queue)
  }

  #settle(run: RunningRun, atMs: number, tookMs: number): void {
    this.#charge(run.account, this.#scale.scaled(tookMs, atMs) - this.#scale.scaled(run.chargedMs, run.chargedAtMs))
    run.chargedMs = tookMs
    run.chargedAtMs = atMs
  }

  /** Counts a running Run in or out; lanes and tenants that a limit holds back, or not any more, follow. */
  #count({ account, pool, concurrencyKey }: RunningRun, by: 1 | -1): void {
    account.running += by
    add(this.#poolRunning, pool, by)
    for (const queue of account.tenantQueues) this.#refreshTenantQueue(queue)
    if (concurrencyKey === undefined) return
    const key = keyId(account.name, concurrencyKey)
    add(this.#keyRunning, key, by)
    for (const fifo of this.#fifosByConcurrencyKey.get(key) ?? []) this.#refreshFifo(fifo)
  }

  /** For changes of what everything is ordered by: all that waits is taken out before, and put in again. */
  #rebuild(change: () => void): void {
    const waiting = [...this.#entries.values()].map(({ request }) => request)
    for (const { key } of waiting) this.remove(key)
    change()
    for (const request of waiting) this.put(request)
  }

  // ---- the tree

  #equivalenceClass(request: RunRequest): EquivalenceClass {
    let equivalenceClass = this.#equivalenceClasses.get(request.equivalenceKey)
    if (!equivalenceClass) {
      equivalenceClass = makeEquivalenceClass(request.equivalenceKey, request.requirements, priorityClasses.length)
      this.#equivalenceClasses.set(request.equivalenceKey, equivalenceClass)
    }
    return equivalenceClass
  }

  #fifo(equivalenceClass: EquivalenceClass, account: TenantAccount, request: RunRequest): FifoQueue {
    const tenantClass = equivalenceClass.levels[request.rank]!
    let queue = tenantClass.all.get(account.name)
    if (!queue) {
      queue = makeTenantQueue(account, equivalenceClass, tenantClass)
      tenantClass.all.set(account.name, queue)
      account.tenantQueues.add(queue)
    }
    const { priority, concurrency } = request
    const name = `${priority}/${concurrency?.limit ?? ''}/${concurrency?.key ?? ''}`
    let fifo = queue.all.get(name)
    if (!fifo) {
      const key = concurrency && keyId(account.name, concurrency.key)
      fifo = makeFifoQueue(name, queue, request, key)
      queue.all.set(name, fifo)
      if (key !== undefined) this.#fifosByConcurrencyKey.set(key, (this.#fifosByConcurrencyKey.get(key) ?? new Set()).add(fifo))
    }
    return fifo
  }

  /** Changes what heaps order by: the lane leaves them before, and comes back if it is open. */
  #reinsertAfter(fifo: FifoQueue, change: () => void): void {
    const { tenantQueue } = fifo
    tenantQueue.level.eligible.delete(tenantQueue)
    tenantQueue.equivalenceClass.oldest.delete(tenantQueue)
    tenantQueue.eligible.delete(fifo)
    tenantQueue.oldest.delete(fifo)
    change()
    this.#refreshFifo(fifo)
  }

  #refreshFifo(fifo: FifoQueue): void {
    const { tenantQueue } = fifo
    const { concurrencyKey, limit } = fifo
    const isFifoEligible = fifo.runs.size > 0 && (concurrencyKey === undefined || (this.#keyRunning.get(concurrencyKey) ?? 0) < limit)
    if (isFifoEligible) {
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

function isEligible({ eligible, account }: TenantQueue): boolean {
  return eligible.size > 0 && account.running < account.maxRunning
}

const keyId = (tenant: string, key: string) => `${tenant}/${key}`

const namespaceOf = (runKey: string) => runKey.slice(0, runKey.indexOf('/'))

function add(counts: Map<string, number>, key: string, by: number): void {
  const next = (counts.get(key) ?? 0) + by
  if (next === 0) counts.delete(key)
  else counts.set(key, next)
}
