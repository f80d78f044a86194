import { defaults } from '../../../api/index.ts'
import { UsageScale } from './decayed-usage.ts'
import { type EquivalenceClass, type FifoQueue, QueueTree, qualifiedKey, type RunQueueEntry, type TenantAccount } from './queue-tree.ts'
import { isSameRequest, type RunRequest } from './run-request.ts'
import { TenantIndex } from './tenants.ts'

export type RunQueueOptions = {
  /** Half-life of a tenant's recorded usage. Default: 15 minutes. */
  readonly halfLifeMs?: number | undefined
  /** Maximum number of Runs active at the same time in all pools. Default: no limit. */
  readonly maxRunning?: number | undefined
  /** The current time; needed if Runs that ended days ago are charged. Default: the time of the first charge. */
  readonly nowMs?: number | undefined
}

/** An active Run. `chargedMs`, charged at `chargedAtMs`, is an estimate until its service time is known. */
type ActiveRun = {
  account: TenantAccount
  readonly pool: string
  readonly concurrencyKey: string | undefined
  readonly sinceMs: number
  chargedMs: number
  chargedAtMs: number
}

/** Estimated service time that a Run is charged at its start, in slot milliseconds; corrected at its end, or when it runs longer. */
export const expectedRunMs = 60_000

/**
 * The queued Runs in scheduling order, the counts of active Runs, and the usage of each tenant. A state machine without I/O and clock: `put` a
 * queued Run, `start` an assigned one, `end` an ended one. {@link RunQueue.next} is then the next eligible Run of an equivalence class, in
 * O(log n), because time alone never changes the order (see {@link UsageScale}).
 *
 * Order: priority class; then the tenant with the least decayed usage by weight; within a tenant priority, then age. A Run that a limit blocks
 * is skipped and delays no other Run.
 */
export class RunQueue {
  readonly #scale: UsageScale
  readonly maxRunning: number
  readonly #entries = new Map<string, RunQueueEntry>()
  readonly #accounts = new Map<string, TenantAccount>()
  readonly #active = new Map<string, ActiveRun>()
  readonly #activeByPool = new Map<string, number>()
  readonly #activeByConcurrencyKey = new Map<string, number>()
  readonly #queuedByPool = new Map<string, number>()
  readonly #tree = new QueueTree(this.#activeByConcurrencyKey)
  #poolLimits: ReadonlyMap<string, number> = new Map()
  #tenants = new TenantIndex()

  constructor({ halfLifeMs = defaults.fairShareHalfLifeMs, maxRunning = Infinity, nowMs }: RunQueueOptions = {}) {
    this.#scale = new UsageScale(halfLifeMs, nowMs)
    this.maxRunning = maxRunning
  }

  // ---- counts, limits and order

  /** Number of queued Runs. */
  get size(): number {
    return this.#entries.size
  }

  /** Number of active Runs. */
  get running(): number {
    return this.#active.size
  }

  queuedIn(pool: string): number {
    return this.#queuedByPool.get(pool) ?? 0
  }

  runningIn(pool: string): number {
    return this.#activeByPool.get(pool) ?? 0
  }

  /** Number of active Runs with the concurrencyKey of the FIFO queue. */
  runningWithKeyOf({ concurrencyKey }: FifoQueue): number {
    return concurrencyKey === undefined ? 0 : (this.#activeByConcurrencyKey.get(concurrencyKey) ?? 0)
  }

  isRunning(key: string): boolean {
    return this.#active.has(key)
  }

  equivalenceClasses(): Iterable<EquivalenceClass> {
    return this.#tree.equivalenceClasses()
  }

  accounts(): Iterable<TenantAccount> {
    return this.#accounts.values()
  }

  /** The entry of a queued Run. */
  find(key: string): RunQueueEntry | undefined {
    return this.#entries.get(key)
  }

  tenantOf(namespace: string): string {
    return this.#tenants.tenantOf(namespace)
  }

  poolLimit(pool: string): number {
    return this.#poolLimits.get(pool) ?? Infinity
  }

  /** The limit that blocks every Run of the pool, if there is one. */
  poolLimitReached(pool: string): 'GlobalLimit' | 'PoolLimit' | undefined {
    if (this.#active.size >= this.maxRunning) return 'GlobalLimit'
    return this.runningIn(pool) >= this.poolLimit(pool) ? 'PoolLimit' : undefined
  }

  isAtLimit({ running, maxRunning }: TenantAccount): boolean {
    return running >= maxRunning
  }

  /** The limit of the tenant or the concurrencyKey that blocks the Runs of the FIFO queue, if there is one. */
  limitReached(fifo: FifoQueue): 'TenantLimit' | 'ConcurrencyLimit' | undefined {
    if (this.isAtLimit(fifo.tenantQueue.account)) return 'TenantLimit'
    return this.#tree.isConcurrencyLimitReached(fifo) ? 'ConcurrencyLimit' : undefined
  }

  /** The first eligible Run of the equivalence class. */
  next(equivalenceClass: EquivalenceClass): RunQueueEntry | undefined {
    for (const { eligible } of equivalenceClass.levels) {
      const queue = eligible.peek()
      if (queue) return queue.eligible.peek()?.runs.peek()
    }
    return undefined
  }

  /** The oldest eligible Run of the equivalence class. */
  oldest(equivalenceClass: EquivalenceClass): RunQueueEntry | undefined {
    return equivalenceClass.oldest.peek()?.oldest.peek()?.runs.peek()
  }

  /** Recent usage of the tenant in slot milliseconds, decayed to `nowMs`. */
  usageMs(account: TenantAccount, nowMs: number): number {
    return this.#scale.usageMs(account.usage, nowMs)
  }

  /** The amount by which {@link TenantAccount.usage} grows when a Run starts at `nowMs`. */
  scaledStartCost(nowMs: number): number {
    return this.#scale.scaled(expectedRunMs, nowMs)
  }

  // ---- settings

  /** Maximum number of active Runs by pool. Pools that are missing have no limit. */
  setPoolLimits(limits: ReadonlyMap<string, number>): void {
    this.#poolLimits = limits
  }

  /** Replaces the mapping of namespaces to tenants, and their weights and limits. Queued and active Runs keep their times. */
  setTenants(tenants: TenantIndex): void {
    this.#rebuild(() => {
      this.#tenants = tenants
      for (const account of this.#accounts.values()) Object.assign(account, tenants.settingsOf(account.name))
      for (const [key, run] of this.#active) {
        const account = this.#account(tenants.tenantOf(namespaceOf(key)))
        if (account === run.account) continue
        this.#count(run, -1)
        run.account = account
        this.#count(run, 1)
      }
    })
  }

  // ---- transitions of Runs

  /** Adds a queued Run, or moves it if its request has changed. */
  put(request: RunRequest): RunQueueEntry {
    const old = this.#entries.get(request.key)
    if (old && isSameRequest(old.request, request)) return old
    if (old) this.remove(request.key)
    const account = this.#account(this.#tenants.tenantOf(request.namespace))
    const entry = this.#tree.add(old ? { ...request, order: old.request.order } : request, account)
    this.#entries.set(request.key, entry)
    add(this.#queuedByPool, request.requirements.pool, 1)
    return entry
  }

  /** Removes a queued Run; unknown keys are ignored. */
  remove(key: string): void {
    const entry = this.#entries.get(key)
    if (!entry) return
    this.#entries.delete(key)
    this.#tree.remove(entry)
    add(this.#queuedByPool, entry.request.requirements.pool, -1)
  }

  /** Records that the Run is active since `sinceMs`. It counts towards the limits, and its tenant is charged its estimated cost. */
  start(run: { key: string; namespace: string; pool: string; concurrencyKey: string | undefined; sinceMs: number }): void {
    if (this.#active.has(run.key)) return
    this.remove(run.key)
    const account = this.#account(this.#tenants.tenantOf(run.namespace))
    const { pool, concurrencyKey, sinceMs } = run
    const active: ActiveRun = { account, pool, concurrencyKey, sinceMs, chargedMs: expectedRunMs, chargedAtMs: sinceMs }
    this.#active.set(run.key, active)
    this.#charge(account, this.#scale.scaled(expectedRunMs, sinceMs))
    this.#count(active, 1)
  }

  /** Records that the Run ended at `atMs`, and replaces its estimated cost by its service time. Unknown keys are ignored. */
  end(key: string, atMs: number): void {
    const run = this.#active.get(key)
    if (!run) return
    this.#active.delete(key)
    this.#settle(run, atMs, Math.max(0, atMs - run.sinceMs))
    this.#count(run, -1)
  }

  /** Reverts a start whose assignment failed: nothing is charged. `put` the Run again if it is still queued. */
  undoStart(key: string): void {
    const run = this.#active.get(key)
    if (!run) return
    this.#active.delete(key)
    this.#charge(run.account, -this.#scale.scaled(run.chargedMs, run.chargedAtMs))
    this.#count(run, -1)
  }

  /** Charges a tenant for a Run that ended before this queue was created. */
  chargePastRun(namespace: string, serviceMs: number, endedAtMs: number): void {
    this.#charge(this.#account(this.#tenants.tenantOf(namespace)), this.#scale.scaled(Math.max(0, serviceMs), endedAtMs))
  }

  /**
   * Periodic accounting, to be called about every 30 s. Runs that exceed their estimate are charged their service time so far; accounts without
   * Runs and without noticeable usage are removed (invariant 10).
   */
  tick(nowMs: number): void {
    for (const run of this.#active.values()) {
      const serviceMs = nowMs - run.sinceMs
      if (serviceMs > run.chargedMs) this.#settle(run, nowMs, serviceMs)
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

  // ---- accounting

  #account(name: string): TenantAccount {
    let account = this.#accounts.get(name)
    if (!account) {
      account = { name, ...this.#tenants.settingsOf(name), usage: 0, running: 0, queued: 0, tenantQueues: new Set() }
      this.#accounts.set(name, account)
    }
    return account
  }

  #charge(account: TenantAccount, scaledCost: number): void {
    // Subtracting an earlier charge may leave a rounding error below 0.
    account.usage = Math.max(0, account.usage + scaledCost)
    this.#tree.reorderAccount(account)
  }

  #settle(run: ActiveRun, atMs: number, serviceMs: number): void {
    this.#charge(run.account, this.#scale.scaled(serviceMs, atMs) - this.#scale.scaled(run.chargedMs, run.chargedAtMs))
    run.chargedMs = serviceMs
    run.chargedAtMs = atMs
  }

  /** Counts an active Run in or out. What a limit now blocks, or no longer blocks, follows in the tree. */
  #count({ account, pool, concurrencyKey }: ActiveRun, by: 1 | -1): void {
    account.running += by
    add(this.#activeByPool, pool, by)
    this.#tree.refreshAccount(account)
    if (concurrencyKey === undefined) return
    const key = qualifiedKey(account.name, concurrencyKey)
    add(this.#activeByConcurrencyKey, key, by)
    this.#tree.refreshConcurrencyKey(key)
  }

  /** For a change of values that the whole tree is ordered by: all queued Runs are removed before it and added again after it. */
  #rebuild(change: () => void): void {
    const queued = [...this.#entries.values()].map(({ request }) => request)
    for (const { key } of queued) this.remove(key)
    change()
    for (const request of queued) this.put(request)
  }
}

const namespaceOf = (runKey: string) => runKey.slice(0, runKey.indexOf('/'))

function add(counts: Map<string, number>, key: string, by: number): void {
  const next = (counts.get(key) ?? 0) + by
  if (next === 0) counts.delete(key)
  else counts.set(key, next)
}
