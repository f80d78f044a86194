import { exponentialDelayMs } from './backoff.ts'
import { FairQueue, type GroupQueue } from './fair-queue.ts'
import { Heap } from './heap.ts'
import { systemTimers, type Timers } from './timers.ts'
import { TokenBucket, type TokenRate } from './token-bucket.ts'

/** Priorities as controller-runtime has them: higher first. */
export const lowPriority = -100
export const normalPriority = 0

/** What a queue reports; durations are in seconds, as its metrics are. `retried` is every add with a delay, as in controller-runtime. */
export type WorkQueueObserver = { added(): void; waited(seconds: number): void; worked(seconds: number): void; retried(): void }

/**
 * `qps` retries a second on average, `burst` at once after a pause. When everything fails at once (the API server is away, a
 * dependency is down), each key's own backoff still lets thousands of them come back in the same second. As client-go's default
 * (10 qps, 100 burst there), a retry waits for the longer of the two.
 */
export type RetryRate = TokenRate

export type WorkQueueOptions = {
  /** Wait after the first failure of a key; doubles with each further one. Default 5. */
  baseDelayMs?: number | undefined
  /** Longest wait after failures. Default 1,000,000. */
  maxDelayMs?: number | undefined
  /** Bounds the retries of all keys together; default: no bound but each key's backoff. */
  retryRate?: RetryRate | undefined
  /**
   * Keys of one group stand in one line, and the lines of a priority take turns, so that one noisy tenant does not
   * starve the others. Default: all keys are one group, first in, first out.
   */
  groupOf?: ((key: string) => string) | undefined
  timers?: Timers | undefined
  observer?: WorkQueueObserver | undefined
}

export type AddOptions = {
  /** Not before this long from now; default 0. A key that is due sooner keeps the sooner time. */
  delayMs?: number | undefined
  /** Default 0; a key that waits with a lower one is moved up. */
  priority?: number | undefined
}

/**
 * Where one key stands. It may be in several places at once, as in "running, wanted again, and due in an hour":
 * `line` is set while it waits for a worker, `isRunning` while a worker has it, `isWantedAgain` if it was added meanwhile,
 * `dueMs` while a delayed add is outstanding. A key without any of these and without failures is forgotten (invariant 10).
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
 * Keys to work on. A key is in it once however often it is added, and never given to two workers at once (invariant 7):
 * what is added while a key runs, runs after it. Nothing that was added is lost while the queue is open.
 */
export class WorkQueue {
  readonly #baseDelayMs: number
  readonly #maxDelayMs: number
  readonly #timers: Timers
  readonly #observer: WorkQueueObserver | undefined
  readonly #entries = new Map<string, WorkQueueEntry>()
  readonly #lanes = new FairQueue<WorkQueueEntry>()
  readonly #groupOf: ((key: string) => string) | undefined
  readonly #retryBucket: TokenBucket | undefined
  /** What workers have, kept only where somebody asks how long. */
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

  /** Keys that wait for a worker now, without the delayed ones. */
  get length(): number {
    return this.#lanes.length
  }

  /** Keys that workers have now. */
  get running(): number {
    return this.#running
  }

  /** Keys that wait for their time. */
  get delayed(): number {
    return this.#due
  }

  /** How many keys wait for a worker with each priority, highest first. */
  byPriority(): { priority: number; length: number }[] {
    return this.#lanes.byPriority()
  }

  /** How long workers have had what they have: all together, and the longest. 0 without an observer. */
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
      // Already wanted now: running it sooner says the same.
      if (entry.groupQueue || entry.isDirty) return
      // Whole milliseconds: V8 keeps them in place, and a fraction in an object of its own, twice for each key that waits.
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
      this.#arm()
      return
    }
    this.#clearDue(entry)
    this.#want(entry, priority)
  }

  /** Adds the key after its backoff: base × 2^failures, at most the maximum, and not before `retryRate` allows; each call is one more failure. */
  addRateLimited(key: string, options: { priority?: number } = {}): void {
    if (this.#isShutDown) return
    const entry = this.#entry(key)
    const backoffMs = exponentialDelayMs(entry.failures + 1, { minMs: this.#baseDelayMs, maxMs: this.#maxDelayMs })
    const delayMs = Math.max(backoffMs, this.#retryBucket?.reserve(this.#timers.nowMs()) ?? 0)
    entry.failures++
    this.add(key, { delayMs, priority: options.priority })
  }

  /** Ends the key's backoff: its next failure is its first. */
  forget(key: string): void {
    const entry = this.#entries.get(key)
    if (!entry) return
    entry.failures = 0
    this.#dropIfIdle(entry)
  }

  /** How often the key failed since it was last forgotten. */
  failures(key: string): number {
    return this.#entries.get(key)?.failures ?? 0
  }

  /** The next key, when there is one; undefined after shutdown. Whoever gets a key must call {@link done} with it. */
  get(): Promise<string | undefined> {
    if (this.#isShutDown) return Promise.resolve(undefined)
    const entry = this.#lanes.pop()
    if (entry) return Promise.resolve(this.#start(entry))
    return new Promise(resolve => this.#waiters.push(resolve))
  }

  /** The worker let go of the key. If it was added meanwhile, it waits again. */
  done(key: string): void {
    const entry = this.#entries.get(key)
    if (!entry?.isProcessing) throw new RangeError(`done(${JSON.stringify(key)}) without get: each key got must be done exactly once`)
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

  /** Ends every waiting and later {@link get} with undefined and drops what waits; keys that run are not touched. */
  shutdown(): void {
    if (this.#isShutDown) return
    this.#isShutDown = true
    this.#cancelTimer?.()
    this.#cancelTimer = undefined
    this.#delayed.clear()
    this.#lanes.clear()
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

  #want(entry: WorkQueueEntry, priority: number): void {
    if (entry.isProcessing) {
      entry.priority = entry.isDirty ? Math.max(entry.priority, priority) : priority
      entry.isDirty = true
    } else if (!entry.groupQueue) {
      entry.priority = priority
      this.#enqueue(entry)
    } else if (priority > entry.priority) {
      this.#lanes.raisePriority(entry, priority)
    }
  }

  #enqueue(entry: WorkQueueEntry): void {
    this.#observer?.added()
    entry.addedMs = this.#observer ? this.#timers.nowMs() : 0
    const waiter = this.#waiters.shift()
    // Somebody waits, so every lane is empty and this key is the next one.
    if (waiter) waiter(this.#start(entry))
    else this.#lanes.push(entry, this.#groupOf ? this.#safeGroup(this.#groupOf, entry.key) : '')
  }

  /** A function that throws must not lose the key: it stands with those that have no group. */
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

  #arm(): void {
    const next = this.#delayed.peek()
    if (!next || next.atMs >= this.#timerMs) return
    this.#cancelTimer?.()
    this.#timerMs = next.atMs
    this.#cancelTimer = this.#timers.after(Math.max(0, next.atMs - this.#timers.nowMs()), () => this.#wake())
  }

  #wake(): void {
    this.#cancelTimer = undefined
    this.#timerMs = Number.POSITIVE_INFINITY
    const nowMs = this.#timers.nowMs()
    for (let next = this.#delayed.peek(); next; next = this.#delayed.peek()) {
      const { atMs, value: entry } = next
      if (entry.dueMs === atMs && atMs > nowMs) break
      this.#delayed.pop()
      if (entry.dueMs !== atMs) continue
      this.#clearDue(entry)
      this.#want(entry, entry.priority)
    }
    this.#arm()
  }

  #dropIfIdle(entry: WorkQueueEntry): void {
    const isIdle = !entry.isProcessing && !entry.groupQueue && !entry.isDirty && entry.dueMs === undefined && entry.failures === 0
    if (isIdle) this.#entries.delete(entry.key)
  }
}
