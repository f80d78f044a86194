import { exponentialDelayMs } from './backoff.ts'
import { FairQueue, type GroupQueue } from './fair-queue.ts'
import { Heap } from './heap.ts'
import { systemTimers, type Timers } from './timers.ts'
import { TokenBucket, type TokenRate } from './token-bucket.ts'

/** Priorities as in controller-runtime: higher first. */
export const lowPriority = -100
export const normalPriority = 0

/** Receives measurements; durations are in seconds, as in metrics. `retried` is every add with a delay, as in controller-runtime. */
export type WorkQueueObserver = { added(): void; waited(seconds: number): void; worked(seconds: number): void; retried(): void }

/**
 * `qps` retries per second on average, with bursts of `burst`. When everything fails together (the API server or a dependency
 * is unavailable), per-key backoff alone still lets thousands of keys retry in the same second. As in client-go (default 10
 * qps, 100 burst), a retry waits for the longer of the two.
 */
export type RetryRate = TokenRate

export type WorkQueueOptions = {
  /** Delay after the first failure of a key; doubles with each further one. Default 5. */
  baseDelayMs?: number | undefined
  /** Longest delay after failures. Default 1,000,000. */
  maxDelayMs?: number | undefined
  /** Limits the retries of all keys together; default: each key's backoff only. */
  retryRate?: RetryRate | undefined
  /**
   * Assigns keys to groups. Within a priority the groups are served round-robin, so that a busy tenant does not starve the
   * others. Default: a single group.
   */
  groupOf?: ((key: string) => string) | undefined
  timers?: Timers | undefined
  observer?: WorkQueueObserver | undefined
}

export type AddOptions = {
  /** Minimum delay from now; default 0. A key that is due earlier keeps its earlier time. */
  delayMs?: number | undefined
  /** Default 0; raises the priority of a key that waits or is delayed with a lower one. */
  priority?: number | undefined
}

/**
 * The state of one key. Several may apply at the same time, such as processing, dirty and delayed by an hour: `groupQueue`
 * is set while the key waits for a worker, `isProcessing` while a worker has it, `isDirty` if it was added meanwhile,
 * `dueMs` while it is delayed. A key without any of these and without failures is removed (invariant 10).
 */
type WorkQueueEntry = {
  readonly key: string
  groupQueue: GroupQueue<unknown> | undefined
  isProcessing: boolean
  isDirty: boolean
  dueMs: number | undefined
  priority: number
  failures: number
  addedMs: number
  startedMs: number
}

/**
 * A queue of keys. It contains each key once however often it is added, and never gives a key to two workers at the same
 * time (invariant 7): a key that is added while it is processed is processed again afterwards. No key is lost while the
 * queue is open.
 */
export class WorkQueue {
  readonly #baseDelayMs: number
  readonly #maxDelayMs: number
  readonly #timers: Timers
  readonly #observer: WorkQueueObserver | undefined
  readonly #entries = new Map<string, WorkQueueEntry>()
  readonly #ready = new FairQueue<WorkQueueEntry>()
  readonly #groupOf: ((key: string) => string) | undefined
  readonly #retryBucket: TokenBucket | undefined
  /** Entries that are being processed; maintained only with an observer. */
  readonly #started = new Set<WorkQueueEntry>()
  readonly #delayed = new Heap<{ atMs: number; value: WorkQueueEntry }>((a, b) => a.atMs < b.atMs)
  readonly #waiters: ((key: string | undefined) => void)[] = []
  #running = 0
  #due = 0
  #cancelTimer: (() => void) | undefined
  #timerMs = Number.POSITIVE_INFINITY
  #isShutDown = false

  constructor(options: WorkQueueOptions = {}) {
    this.#baseDelayMs = options.baseDelayMs ?? 5
    this.#maxDelayMs = options.maxDelayMs ?? 1_000_000
    this.#timers = options.timers ?? systemTimers
    this.#observer = options.observer
    this.#groupOf = options.groupOf
    this.#retryBucket = options.retryRate && new TokenBucket('retryRate', options.retryRate, this.#timers.nowMs())
  }

  /** Keys that wait for a worker, excluding delayed ones. */
  get length(): number {
    return this.#ready.length
  }

  /** Keys that are being processed. */
  get running(): number {
    return this.#running
  }

  /** Delayed keys. */
  get delayed(): number {
    return this.#due
  }

  /** The number of waiting keys of each priority, highest first. */
  byPriority(): { priority: number; length: number }[] {
    return this.#ready.byPriority()
  }

  /** The durations of the keys that are being processed: their sum and the longest. 0 without an observer. */
  runningSeconds(): { sum: number; longest: number } {
    const nowMs = this.#timers.nowMs()
    let sum = 0
    let longest = 0
    for (const { startedMs } of this.#started) {
      const seconds = (nowMs - startedMs) / 1_000
      sum += seconds
      longest = Math.max(longest, seconds)
    }
    return { sum, longest }
  }

  add(key: string, options: AddOptions = {}): void {
    if (this.#isShutDown) return
    const { delayMs = 0, priority = normalPriority } = options
    const entry = this.#entry(key)
    if (delayMs > 0) {
      this.#observer?.retried()
      // The key waits already, which is sooner.
      if (entry.groupQueue || entry.isDirty) return
      // Whole milliseconds: V8 stores small integers in place, but allocates an object for a fraction, twice for each delayed key.
      const dueMs = Math.ceil(this.#timers.nowMs() + delayMs)
      if (entry.dueMs === undefined) {
        this.#due++
        entry.priority = priority
      } else {
        entry.priority = Math.max(entry.priority, priority)
        if (entry.dueMs <= dueMs) return
      }
      entry.dueMs = dueMs
      this.#delayed.push({ atMs: dueMs, value: entry })
      if (this.#delayed.size > this.#due * 2 + 1_024) this.#delayed.compact(({ atMs, value }) => value.dueMs === atMs)
      this.#setTimer()
      return
    }
    const isDelayed = entry.dueMs !== undefined
    this.#clearDue(entry)
    this.#schedule(entry, isDelayed ? Math.max(entry.priority, priority) : priority)
  }

  /** Adds the key after its backoff: base × 2^failures, at most the maximum, and not before `retryRate` allows. Each call counts as a failure. */
  addRateLimited(key: string, options: { priority?: number } = {}): void {
    if (this.#isShutDown) return
    const entry = this.#entry(key)
    const backoffMs = exponentialDelayMs(entry.failures + 1, { minMs: this.#baseDelayMs, maxMs: this.#maxDelayMs })
    const delayMs = Math.max(backoffMs, this.#retryBucket?.reserve(this.#timers.nowMs()) ?? 0)
    entry.failures++
    this.add(key, { delayMs, priority: options.priority })
  }

  /** Resets the backoff of the key. */
  forget(key: string): void {
    const entry = this.#entries.get(key)
    if (!entry) return
    entry.failures = 0
    this.#dropIfIdle(entry)
  }

  /** Whether the key waits, is delayed, or is being processed. */
  has(key: string): boolean {
    return this.#entries.has(key)
  }

  /** The priority of a key that waits, is delayed, or is processed; of one that was added while it is processed, that of its next turn. */
  priorityOf(key: string): number {
    return this.#entries.get(key)?.priority ?? normalPriority
  }

  /** Failures of the key since it was last forgotten. */
  failures(key: string): number {
    return this.#entries.get(key)?.failures ?? 0
  }

  /** Resolves with the next key, or with undefined after shutdown. The caller must call {@link done} with the key. */
  get(): Promise<string | undefined> {
    if (this.#isShutDown) return Promise.resolve(undefined)
    const entry = this.#ready.pop()
    if (entry) return Promise.resolve(this.#start(entry))
    return new Promise(resolve => this.#waiters.push(resolve))
  }

  /** Ends the processing of the key. If it was added meanwhile, it is queued again. */
  done(key: string): void {
    const entry = this.#entries.get(key)
    if (!entry?.isProcessing) throw new RangeError(`done(${JSON.stringify(key)}) without get: call done exactly once per key`)
    entry.isProcessing = false
    this.#running--
    this.#started.delete(entry)
    this.#observer?.worked((this.#timers.nowMs() - entry.startedMs) / 1_000)
    if (entry.isDirty && !this.#isShutDown) {
      entry.isDirty = false
      this.#enqueue(entry)
    } else {
      this.#dropIfIdle(entry)
    }
  }

  /** Resolves every pending and later {@link get} with undefined and drops waiting keys; keys being processed are not affected. */
  shutdown(): void {
    if (this.#isShutDown) return
    this.#isShutDown = true
    this.#cancelTimer?.()
    this.#cancelTimer = undefined
    this.#delayed.clear()
    this.#ready.clear()
    this.#due = 0
    for (const [key, entry] of this.#entries) if (!entry.isProcessing) this.#entries.delete(key)
    for (const waiter of this.#waiters.splice(0)) waiter(undefined)
  }

  #entry(key: string): WorkQueueEntry {
    let entry = this.#entries.get(key)
    if (!entry) {
      entry = {
        key,
        groupQueue: undefined,
        isProcessing: false,
        isDirty: false,
        dueMs: undefined,
        priority: normalPriority,
        failures: 0,
        addedMs: 0,
        startedMs: 0,
      }
      this.#entries.set(key, entry)
    }
    return entry
  }

  #schedule(entry: WorkQueueEntry, priority: number): void {
    if (entry.isProcessing) {
      entry.priority = entry.isDirty ? Math.max(entry.priority, priority) : priority
      entry.isDirty = true
    } else if (!entry.groupQueue) {
      entry.priority = priority
      this.#enqueue(entry)
    } else if (priority > entry.priority) {
      this.#ready.raisePriority(entry, priority)
    }
  }

  #enqueue(entry: WorkQueueEntry): void {
    this.#observer?.added()
    entry.addedMs = this.#observer ? this.#timers.nowMs() : 0
    const waiter = this.#waiters.shift()
    // A worker is waiting, so the queue is empty and this key is the next one.
    if (waiter) waiter(this.#start(entry))
    else this.#ready.push(entry, this.#groupOf ? this.#safeGroup(this.#groupOf, entry.key) : '')
  }

  /** A `groupOf` that throws must not lose the key: it joins the default group. */
  #safeGroup(groupOf: (key: string) => string, key: string): string {
    try {
      return String(groupOf(key))
    } catch {
      return ''
    }
  }

  #start(entry: WorkQueueEntry): string {
    entry.isProcessing = true
    this.#running++
    if (this.#observer) {
      entry.startedMs = this.#timers.nowMs()
      this.#started.add(entry)
      this.#observer.waited((entry.startedMs - entry.addedMs) / 1_000)
    }
    return entry.key
  }

  #clearDue(entry: WorkQueueEntry): void {
    if (entry.dueMs === undefined) return
    entry.dueMs = undefined
    this.#due--
  }

  #setTimer(): void {
    const next = this.#delayed.peek()
    if (!next || next.atMs >= this.#timerMs) return
    this.#cancelTimer?.()
    this.#timerMs = next.atMs
    this.#cancelTimer = this.#timers.after(Math.max(0, next.atMs - this.#timers.nowMs()), () => this.#addDue())
  }

  #addDue(): void {
    this.#cancelTimer = undefined
    this.#timerMs = Number.POSITIVE_INFINITY
    const nowMs = this.#timers.nowMs()
    for (let next = this.#delayed.peek(); next; next = this.#delayed.peek()) {
      const { atMs, value: entry } = next
      if (entry.dueMs === atMs && atMs > nowMs) break
      this.#delayed.pop()
      if (entry.dueMs !== atMs) continue
      this.#clearDue(entry)
      this.#schedule(entry, entry.priority)
    }
    this.#setTimer()
  }

  #dropIfIdle(entry: WorkQueueEntry): void {
    const isIdle = !entry.isProcessing && !entry.groupQueue && !entry.isDirty && entry.dueMs === undefined && entry.failures === 0
    if (isIdle) this.#entries.delete(entry.key)
  }
}
