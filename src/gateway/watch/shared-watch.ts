import type { GatewayUser } from '../request/index.ts'
import { bookmarkLine, movedLine } from './bookmark-line.ts'
import type { RingLimits } from './event-ring.ts'
import type { MergedEvent } from './merge-events.ts'
import { MergedWatch, type MergedWatchPart } from './merged-watch.ts'
import type { SharedEvent } from './select-event.ts'
import { SharedLog, type Subscriber } from './shared-log.ts'
import { UnknownField } from './watch-selection.ts'

/** A client of a shared watch, with what the gateway does for it while nothing happens. */
export type SharedClient = Subscriber & {
  /** What its bookmarks look like; undefined if it wants none. */
  readonly bookmarks: string | undefined
  /** Whether it may go on: asked from time to time. A rejection leaves the question open. */
  isAllowed(): Promise<boolean>
  /** The watch has ended; the client opens another one. `isBroken`: the connection must be closed without an end of the body. */
  end(isBroken: boolean): void
}

export type SharedWatchOptions = {
  readonly parts: readonly MergedWatchPart[]
  /** As whom the partitions are watched. */
  readonly user: GatewayUser
  readonly headers: Readonly<Record<string, string>>
  /** A version that every partition has reached. */
  readonly from: number
  readonly ring: RingLimits
  maxBufferedBytes(): number
  /** How often the rights of each client are checked. */
  readonly checkEveryMs: number
  /** How long the watch stays open without a client. */
  readonly lingerMs: number
  /** Whether the objects are still in these partitions; if not, every client lists again. */
  isCurrent(): boolean
  /** `WatchPlan.isCurrentAt` */
  isCurrentAt(epoch: number): boolean | Promise<boolean>
  reconnected?(partition: string): void
  passed?(events: number): void
  closed(): void
  readonly log: (message: string, error?: unknown) => void
}

const sweepEveryMs = 500
const bookmarkEveryMs = 45_000

type Times = { nextBookmarkMs: number; nextCheckMs: number; lastBookmark: number; isChecking: boolean }

/** One watch of the partitions, which the gateway opens as itself, for all clients that watch the same collection with whatever selection. */
export class SharedWatch {
  readonly #options: SharedWatchOptions
  readonly #log: SharedLog
  readonly #watch: MergedWatch
  readonly #times = new Map<SharedClient, Times>()
  readonly #reaching = new Set<{ readonly version: number; readonly done: (version: number) => void }>()
  readonly #timer: NodeJS.Timeout
  #emptySinceMs = performance.now()
  #isClosed = false

  constructor(options: SharedWatchOptions) {
    const { parts, user, headers, from, maxBufferedBytes, ring, log } = options
    this.#options = options
    this.#log = new SharedLog(from, ring)
    this.#watch = new MergedWatch({
      ...{ parts, user, from, maxBufferedBytes, log, wantsBookmarks: false, marksInitialEnd: false },
      isCurrentAt: epoch => options.isCurrentAt(epoch),
      headers: { ...headers, 'x-oarlock-watch-selected': 'true' },
      write: lines => {
        for (const client of this.#times.keys()) client.deliver(lines)
        return true
      },
      deliver: events => this.#deliver(events),
      progressed: () => this.#progressed(),
      reconnected: partition => options.reconnected?.(partition),
      end: isBroken => this.#end(isBroken),
    })
    this.#timer = setInterval(() => this.#sweep(), sweepEveryMs).unref()
  }

  get isClosed(): boolean {
    return this.#isClosed
  }

  /** Every event after this version is kept. */
  get floor(): number {
    return this.#log.floor
  }

  get bytes(): number {
    return this.#log.bytes
  }

  get clients(): number {
    return this.#times.size
  }

  /** @throws {StatusError} or {Error} if a partition does not let it watch. */
  async open(): Promise<void> {
    const rejected = await this.#watch.open().catch(error => {
      this.#close()
      throw error
    })
    if (!rejected) return
    this.#close()
    throw new Error(`a partition answers a shared watch with ${rejected.status}`)
  }

  /** Adds a client, and sends what it has missed; false if it has missed too much, or the watch has ended. */
  add(client: SharedClient): boolean {
    if (this.#isClosed) return false
    const nowMs = performance.now()
    // Jittered, so that thousands of clients do not get their bookmarks at the same time.
    const times = {
      nextBookmarkMs: nowMs + bookmarkEveryMs * (0.5 + Math.random()),
      nextCheckMs: nowMs + this.#options.checkEveryMs * (0.5 + Math.random() / 2),
      ...{ lastBookmark: 0, isChecking: false },
    }
    // First: what it gets now may end it.
    this.#times.set(client, times)
    if (this.#log.add(client)) return true
    this.remove(client)
    return false
  }

  remove(client: SharedClient): void {
    this.#log.remove(client)
    this.#times.delete(client)
    if (this.#times.size === 0) this.#emptySinceMs = performance.now()
  }

  /** Calls back with a version that is at least this one, right after every event up to it was delivered, and before the next. Not if the watch ends. */
  reach(version: number, done: (version: number) => void): void {
    if (this.#isClosed) return
    this.#reaching.add({ version, done })
    if (this.#watch.watermark >= version) this.#progressed()
    else this.#watch.reach(version)
  }

  close(): void {
    this.#end(false)
  }

  #deliver(events: readonly MergedEvent[]): void {
    try {
      const shared = events.map(asShared)
      this.#log.push(shared)
      this.#options.passed?.(events.length)
    } catch (error) {
      // The clients continue with another watch, which has the field.
      if (!(error instanceof UnknownField)) this.#options.log('a shared watch is ended', error)
      this.#end(true)
    }
  }

  #progressed(): void {
    const { watermark } = this.#watch
    for (const wait of this.#reaching) {
      if (wait.version > watermark) continue
      this.#reaching.delete(wait)
      wait.done(watermark)
    }
  }

  #sweep(): void {
    if (!this.#options.isCurrent()) {
      for (const client of this.#times.keys()) client.deliver([movedLine])
      this.#end(false)
      return
    }
    const nowMs = performance.now()
    const { watermark } = this.#watch
    for (const [client, times] of this.#times) {
      if (times.nextCheckMs <= nowMs && !times.isChecking) void this.#check(client, times)
      if (client.bookmarks === undefined || times.nextBookmarkMs > nowMs || watermark <= times.lastBookmark) continue
      times.nextBookmarkMs = nowMs + bookmarkEveryMs
      times.lastBookmark = watermark
      client.deliver([bookmarkLine(client.bookmarks, watermark)])
    }
    if (this.#times.size === 0 && this.#reaching.size === 0 && nowMs - this.#emptySinceMs > this.#options.lingerMs) this.#end(false)
  }

  async #check(client: SharedClient, times: Times): Promise<void> {
    times.isChecking = true
    try {
      // The next watch of the client gets the reason.
      if (!(await client.isAllowed())) client.end(false)
    } catch {
      // A partition that does not answer: its events wait, too.
    }
    times.isChecking = false
    times.nextCheckMs = performance.now() + this.#options.checkEveryMs
  }

  #end(isBroken: boolean): void {
    if (this.#isClosed) return
    this.#close()
    for (const client of [...this.#times.keys()]) {
      this.remove(client)
      client.end(isBroken)
    }
  }

  #close(): void {
    this.#isClosed = true
    clearInterval(this.#timer)
    this.#watch.close()
    this.#reaching.clear()
    this.#options.closed()
  }
}

function asShared({ revision, line, leaving, selected, source }: MergedEvent): SharedEvent {
  if (selected) return { revision, line, leaving, selected, source }
  throw new Error(`partition ${source} does not send what selectors select by`)
}
