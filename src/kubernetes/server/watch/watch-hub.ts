import type { Store, Table } from '../storage/index.ts'
import { TableWatchers } from './table-watchers.ts'
import { Watcher, type WatcherOptions } from './watcher.ts'

const sweepEveryMs = 500
const bookmarkEveryMs = 45_000
/** So long a watch may go on after the right to it was taken away, or its token has come to its end; revoked, until the next sweep. */
const checkEveryMs = 15_000
/** What tokens hang on and end with. */
const credentialTables = ['secrets', 'serviceaccounts']
const sliceMs = 4
/**
 * Deliveries rest at least as long as the last ones took, so that requests get half of the event loop, and up to this multiple of it while
 * that is not long: most of a write is spent outside of this program and does not depend on how much is written.
 */
const maxPauseFactor = 4
const maxLongPauseMs = 4

/**
 * All open watches: hands them what is committed, ends them in time, tells quiet ones how far the store has come.
 *
 * Deliveries are paced by what they cost. Few watchers get every commit at once; many of them would take all the time there is
 * for one small write each, so what is committed while others are served, or for as long after that, leaves together:
 * the more watchers, the longer the lines of one write, and never more than half of the event loop.
 */
export class WatchHub {
  readonly #byTable = new Map<Table, TableWatchers>()
  readonly #store: Store
  readonly #checkEveryMs: number
  readonly #timer: NodeJS.Timeout
  readonly #onError: (error: unknown) => void
  #pending = new Set<TableWatchers>()
  /** Deliveries under way, or about to be. */
  #delivery: Generator<Watcher> | undefined
  #pausedUntilMs = 0
  /** When tables of what tokens hang on were written last, as of the last sweep. */
  #credentialsRevision = 0
  #size = 0

  /** @param onError told why a watch that could not be served was ended. */
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

  /** @param timeoutMs when the server ends it. */
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
    // Spread, so that thousands of watches do not get their bookmarks at once.
    watcher.nextBookmarkMs = nowMs + bookmarkEveryMs * (0.5 + Math.random())
    watcher.nextCheckMs = nowMs + this.#checkEveryMs * (0.5 + Math.random() / 2)
    watchers.add(watcher)
    this.#size++
    return watcher
  }

  /** Hands out what waits, then ends all watches with a clean end of stream. */
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
    // Timers know whole milliseconds only.
    if (waitMs < 0.5) setImmediate(run)
    else setTimeout(run, waitMs)
  }

  // A round over thousands of watchers is cut into slices, between which requests have their turn.
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
      // Nothing of this table up to here is left out of what is delivered now.
      const { revision } = this.#store
      for (const watcher of watchers.deliver()) {
        this.#bookmark(watcher, revision, nowMs)
        yield watcher
      }
    }
  }

  #sweep(): void {
    // Monotonic: a step of the wall clock must not end every watch.
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

  // Its client asks again, and is told why it may not.
  #isStillAllowed(watcher: Watcher, nowMs: number, haveCredentialsChanged: boolean): boolean {
    if (watcher.nextCheckMs > nowMs) return !haveCredentialsChanged || watcher.revalidate('credential')
    watcher.nextCheckMs = nowMs + this.#checkEveryMs
    return watcher.revalidate('all')
  }

  #bookmark(watcher: Watcher, revision: number, nowMs: number): void {
    if (watcher.nextBookmarkMs > nowMs) return
    watcher.nextBookmarkMs = nowMs + bookmarkEveryMs
    if (watcher.wantsBookmarks) watcher.bookmark(revision)
  }
}
