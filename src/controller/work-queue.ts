import { DelayHeap } from './delay-heap.ts'
import { systemTimers, type Timers } from './timers.ts'

/** Priorities as controller-runtime has them: higher first. */
export const lowPriority = -100
export const normalPriority = 0

/** What a queue reports; durations are in seconds, as its metrics are. */
export type QueueObserver = { added(): void; waited(seconds: number): void; worked(seconds: number): void; retried(): void }

export type WorkQueueOptions = {
  /** Wait after the first failure of a key; doubles with each further one. Default 5. */
  baseDelayMs?: number
  /** Longest wait after failures. Default 1,000,000. */
  maxDelayMs?: number
  timers?: Timers
  observer?: QueueObserver
}

export type AddOptions = {
  /** Not before this long from now; default 0. A key that is due sooner keeps the sooner time. */
  delayMs?: number
  /** Default 0; a key that waits with a lower one is moved up. */
  priority?: number
}

/**
 * Where one key stands. It may be in several places at once, as in "running, wanted again, and due in an hour":
 * `lane` is set while it waits for a worker, `isRunning` while a worker has it, `isWantedAgain` if it was added meanwhile,
 * `dueMs` while a delayed add is outstanding. A key without any of these and without failures is forgotten (invariant 10).
 */
type Entry = {
  readonly key: string
  lane: Lane | undefined
  isRunning: boolean
  isWantedAgain: boolean
  dueMs: number | undefined
  priority: number
  failures: number
  addedMs: number
  startedMs: number
}

/** First in, first out, for one priority. `live` counts the entries whose `lane` is this one; the rest moved up. */
type Lane = { readonly priority: number; entries: (Entry | undefined)[]; head: number; live: number }

/**
 * Keys to work on. A key is in it once however often it is added, and never given to two workers at once (invariant 7):
 * what is added while a key runs, runs after it. Nothing that was added is lost while the queue is open.
 */
export class WorkQueue {
  readonly #baseDelayMs: number
  readonly #maxDelayMs: number
  readonly #timers: Timers
  readonly #observer: QueueObserver | undefined
  readonly #entries = new Map<string, Entry>()
  /** By falling priority. */
  readonly #lanes: Lane[] = []
  readonly #delayed = new DelayHeap<Entry>()
  readonly #waiters: ((key: string | undefined) => void)[] = []
  #length = 0
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
  }

  /** Keys that wait for a worker now, without the delayed ones. */
  get length(): number {
    return this.#length
  }

  /** Keys that workers have now. */
  get running(): number {
    return this.#running
  }

  /** Keys that wait for their time. */
  get delayed(): number {
    return this.#due
  }

  add(key: string, options: AddOptions = {}): void {
    if (this.#isShutDown) return
    const { delayMs = 0, priority = normalPriority } = options
    const entry = this.#entry(key)
    if (delayMs > 0) {
      // Already wanted now: running it sooner says the same.
      if (entry.lane || entry.isWantedAgain) return
      const dueMs = this.#timers.nowMs() + delayMs
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

  /** Adds the key after its backoff: base × 2^failures, at most the maximum; each call is one more failure. */
  addRateLimited(key: string, options: { priority?: number } = {}): void {
    if (this.#isShutDown) return
    const entry = this.#entry(key)
    const delayMs = Math.min(this.#maxDelayMs, this.#baseDelayMs * 2 ** entry.failures)
    entry.failures++
    this.#observer?.retried()
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
    const entry = this.#take()
    if (entry) return Promise.resolve(this.#start(entry))
    return new Promise(resolve => this.#waiters.push(resolve))
  }

  /** The worker let go of the key. If it was added meanwhile, it waits again. */
  done(key: string): void {
    const entry = this.#entries.get(key)
    if (!entry?.isRunning) throw new RangeError(`done(${JSON.stringify(key)}) without get: each key got must be done exactly once`)
    entry.isRunning = false
    this.#running--
    this.#observer?.worked((this.#timers.nowMs() - entry.startedMs) / 1_000)
    if (entry.isWantedAgain && !this.#isShutDown) {
      entry.isWantedAgain = false
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
    this.#lanes.length = 0
    this.#length = 0
    this.#due = 0
    for (const [key, entry] of this.#entries) if (!entry.isRunning) this.#entries.delete(key)
    for (const waiter of this.#waiters.splice(0)) waiter(undefined)
  }

  #entry(key: string): Entry {
    let entry = this.#entries.get(key)
    if (!entry) {
      entry = {
        key,
        lane: undefined,
        isRunning: false,
        isWantedAgain: false,
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

  #want(entry: Entry, priority: number): void {
    if (entry.isRunning) {
      entry.priority = entry.isWantedAgain ? Math.max(entry.priority, priority) : priority
      entry.isWantedAgain = true
    } else if (!entry.lane) {
      entry.priority = priority
      this.#enqueue(entry)
    } else if (priority > entry.priority) {
      entry.priority = priority
      entry.lane.live--
      this.#compact(entry.lane)
      this.#line(entry)
    }
  }

  #enqueue(entry: Entry): void {
    this.#observer?.added()
    entry.addedMs = this.#observer ? this.#timers.nowMs() : 0
    const waiter = this.#waiters.shift()
    // Somebody waits, so every lane is empty and this key is the next one.
    if (waiter) {
      waiter(this.#start(entry))
    } else {
      this.#length++
      this.#line(entry)
    }
  }

  #line(entry: Entry): void {
    let index = 0
    while (index < this.#lanes.length && (this.#lanes[index] as Lane).priority > entry.priority) index++
    let lane = this.#lanes[index]
    if (lane?.priority !== entry.priority) {
      lane = { priority: entry.priority, entries: [], head: 0, live: 0 }
      this.#lanes.splice(index, 0, lane)
    }
    lane.entries.push(entry)
    lane.live++
    entry.lane = lane
  }

  #take(): Entry | undefined {
    for (let index = 0; index < this.#lanes.length; index++) {
      const lane = this.#lanes[index] as Lane
      while (lane.head < lane.entries.length) {
        const entry = lane.entries[lane.head] as Entry
        lane.entries[lane.head++] = undefined
        if (lane.head > 1_024 && lane.head * 2 > lane.entries.length) {
          lane.entries = lane.entries.slice(lane.head)
          lane.head = 0
        }
        if (entry.lane !== lane) continue
        entry.lane = undefined
        lane.live--
        this.#length--
        return entry
      }
      // Priorities are the caller's numbers: a lane for each one ever used would grow without bound.
      this.#lanes.splice(index--, 1)
    }
    return undefined
  }

  #start(entry: Entry): string {
    entry.isRunning = true
    this.#running++
    if (this.#observer) {
      entry.startedMs = this.#timers.nowMs()
      this.#observer.waited((entry.startedMs - entry.addedMs) / 1_000)
    }
    return entry.key
  }

  /** Entries that moved up leave their place behind: swept when they are the most of a lane. */
  #compact(lane: Lane): void {
    if (lane.entries.length - lane.head <= lane.live * 2 + 1_024) return
    lane.entries = [...new Set(lane.entries.slice(lane.head))].filter(entry => entry?.lane === lane)
    lane.head = 0
  }

  #clearDue(entry: Entry): void {
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

  #dropIfIdle(entry: Entry): void {
    const isIdle = !entry.isRunning && !entry.lane && !entry.isWantedAgain && entry.dueMs === undefined && entry.failures === 0
    if (isIdle) this.#entries.delete(entry.key)
  }
}
