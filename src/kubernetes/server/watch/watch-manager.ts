import type { Store, Table } from '../storage/index.ts'
import { TableWatchers } from './table-watchers.ts'
import { Watcher, type WatcherOptions } from './watcher.ts'

const sweepEveryMs = 500
const bookmarkEveryMs = 45_000
/** A watch ends at most this long after its user lost the right to it or its token expired; after a revocation, at the next sweep. */
const checkEveryMs = 15_000
/** Tables whose objects tokens depend on. */
const credentialTables = ['secrets', 'serviceaccounts']
const sliceMs = 4
/**
 * After a delivery, the next one waits at least as long as this one took, so that requests get half of the event loop. While that is
 * short, it waits up to this multiple: most of the cost of a write is in the kernel and does not depend on its length.
 */
const maxPauseFactor = 4
const maxLongPauseMs = 4

/**
 * All open watches: delivers committed events, ends expired watches, and sends bookmarks to idle ones.
 *
 * Deliveries are paced by their cost. A few watchers get every commit immediately. Thousands of watchers would use up the event loop
 * with one small write each, so events that are committed during a delivery, and for as long after it, are delivered together: the more
 * watchers, the more events per write, and never more than half of the event loop.
 */
export class WatchManager {
  readonly #byTable = new Map<Table, TableWatchers>()
  readonly #byId = new Map<string, Watcher>()
  readonly #store: Store
  readonly #checkEveryMs: number
  readonly #timer: NodeJS.Timeout
  readonly #onError: (error: unknown) => void
  #pending = new Set<TableWatchers>()
  /** The delivery in progress or scheduled. */
  #delivery: Generator<Watcher> | undefined
  #pausedUntilMs = 0
  /** The last revision of the tables that tokens depend on, as of the last sweep. */
  #credentialsRevision = 0
  #size = 0

  /** @param onError called with the error of a watch that was ended because of it. */
  constructor(store: Store, onError: (error: unknown) => void = () => {}, limits: { checkEveryMs?: number } = {}) {
    this.#store = store
    this.#checkEveryMs = limits.checkEveryMs ?? checkEveryMs
    this.#onError = onError
    this.#timer = setInterval(() => this.#sweep(), sweepEveryMs)
    this.#timer.unref()
  }

  get size(): number {
    return this.#size
  }

  /** @param timeoutMs the server ends the watch after this time. */
  open(options: Omit<WatcherOptions, 'onClose' | 'nowMs'>, timeoutMs: number): Watcher {
    const nowMs = performance.now()
    const { table } = options
    let watchers = this.#byTable.get(table)
    if (!watchers) {
      watchers = new TableWatchers(table, pending => this.#schedule(pending), this.#onError)
      this.#byTable.set(table, watchers)
    }
    const watcher = new Watcher({ ...options, nowMs: () => this.#store.nowMs, onClose: closed => this.#remove(table, closed) })
    watcher.deadlineMs = nowMs + timeoutMs
    // Jittered, so that thousands of watches do not get their bookmarks at the same time.
    watcher.nextBookmarkMs = nowMs + bookmarkEveryMs * (0.5 + Math.random())
    watcher.nextCheckMs = nowMs + this.#checkEveryMs * (0.5 + Math.random() / 2)
    watchers.add(watcher)
    if (options.id !== undefined) this.#byId.set(options.id, watcher)
    this.#size++
    return watcher
  }

  /** The watch with this id gets a bookmark of the current revision, after every event up to it: now, or when these are delivered. */
  requestBookmark(id: string): void {
    const watcher = this.#byId.get(id)
    if (!watcher) return
    watcher.requestedRevision = this.#store.revision
    if (this.#byTable.get(watcher.table)?.isIdle) this.#bookmark(watcher, this.#store.revision, performance.now())
  }

  /** Reports the version of home's map to every gateway, before anything that is written from now on. */
  mapChanged(epoch: number): void {
    // Not by id: the short watches that bring clients to the present share one.
    for (const watchers of this.#byTable.values()) for (const watcher of watchers) watcher.showMap(epoch)
  }

  /** Delivers pending events, then ends all watches with a clean end of stream. */
  close(): void {
    clearInterval(this.#timer)
    if (this.#delivery) for (const _ of this.#delivery);
    for (const _ of this.#deliveries());
    for (const watchers of this.#byTable.values()) for (const watcher of [...watchers]) watcher.end()
  }

  #remove(table: Table, watcher: Watcher): void {
    const watchers = this.#byTable.get(table)
    if (!watchers) return
    watchers.remove(watcher)
    if (watcher.id !== undefined && this.#byId.get(watcher.id) === watcher) this.#byId.delete(watcher.id)
    this.#size--
    if (watchers.size > 0) return
    watchers.release()
    this.#byTable.delete(table)
    this.#pending.delete(watchers)
  }

  #schedule(watchers: TableWatchers): void {
    this.#pending.add(watchers)
    if (this.#delivery) return
    this.#delivery = this.#deliveries()
    const waitMs = this.#pausedUntilMs - performance.now()
    const run = () => this.#run(0)
    // Timers have a resolution of 1 ms.
    if (waitMs < 0.5) setImmediate(run)
    else setTimeout(run, waitMs)
  }

  // A delivery to thousands of watchers is divided into slices, between which requests are served.
  #run(beforeMs: number): void {
    const startMs = performance.now()
    let busyMs = 0
    while (!this.#delivery?.next().done) {
      busyMs = performance.now() - startMs
      if (busyMs < sliceMs) continue
      setImmediate(() => this.#run(beforeMs + busyMs))
      return
    }
    this.#delivery = undefined
    const tookMs = beforeMs + busyMs
    this.#pausedUntilMs = startMs + busyMs + Math.max(tookMs, Math.min(tookMs * maxPauseFactor, maxLongPauseMs))
    const [next] = this.#pending
    if (next) this.#schedule(next)
  }

  *#deliveries(): Generator<Watcher> {
    const pending = this.#pending
    this.#pending = new Set()
    const nowMs = performance.now()
    for (const watchers of pending) {
      // This delivery includes every event of the table up to this revision.
      const { revision } = this.#store
      for (const watcher of watchers.deliver()) {
        this.#bookmark(watcher, revision, nowMs)
        yield watcher
      }
    }
  }

  #sweep(): void {
    // Monotonic time: a step of the wall clock must not end every watch.
    const nowMs = performance.now()
    const credentialsAt = Math.max(...credentialTables.map(name => this.#store.table(name).lastRevision))
    const haveChanged = credentialsAt !== this.#credentialsRevision
    this.#credentialsRevision = credentialsAt
    for (const watchers of this.#byTable.values()) {
      const { isIdle } = watchers
      for (const watcher of watchers) {
        if (watcher.deadlineMs <= nowMs || !this.#isStillAllowed(watcher, nowMs, haveChanged)) watcher.end()
        else if (isIdle) this.#bookmark(watcher, this.#store.revision, nowMs)
      }
    }
  }

  // The client of an ended watch opens another one, and that request gets the error.
  #isStillAllowed(watcher: Watcher, nowMs: number, haveCredentialsChanged: boolean): boolean {
    if (watcher.nextCheckMs > nowMs) return !haveCredentialsChanged || watcher.revalidate('credential')
    watcher.nextCheckMs = nowMs + this.#checkEveryMs
    return watcher.revalidate('all')
  }

  #bookmark(watcher: Watcher, revision: number, nowMs: number): void {
    const { requestedRevision } = watcher
    if (requestedRevision !== undefined ? revision < requestedRevision : watcher.nextBookmarkMs > nowMs) return
    if (!watcher.wantsBookmarks && requestedRevision !== undefined) return
    watcher.requestedRevision = undefined
    watcher.nextBookmarkMs = nowMs + bookmarkEveryMs
    if (watcher.wantsBookmarks) watcher.bookmark(revision)
  }
}
