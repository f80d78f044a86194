import type { Store } from '../storage/index.ts'
import { Watcher, type WatcherOptions } from './watcher.ts'

const sweepEveryMs = 500
const bookmarkEveryMs = 45_000

/** All open watches: ends them in time, tells quiet ones how far the store has come. */
export class WatchHub {
  readonly #watchers = new Set<Watcher>()
  readonly #store: Store
  readonly #timer: NodeJS.Timeout

  constructor(store: Store) {
    this.#store = store
    this.#timer = setInterval(() => this.#sweep(), sweepEveryMs)
    this.#timer.unref()
  }

  get size(): number {
    return this.#watchers.size
  }

  /** @param timeoutMs when the server ends it. */
  open(options: Omit<WatcherOptions, 'onClose' | 'nowMs'>, timeoutMs: number): Watcher {
    const nowMs = performance.now()
    const watcher = new Watcher({ ...options, nowMs: () => this.#store.nowMs, onClose: closed => this.#watchers.delete(closed) })
    watcher.deadlineMs = nowMs + timeoutMs
    // Spread, so that thousands of watches do not get their bookmarks at once.
    watcher.nextBookmarkMs = nowMs + bookmarkEveryMs * (0.5 + Math.random())
    this.#watchers.add(watcher)
    return watcher
  }

  /** Ends all watches with a clean end of stream. */
  close(): void {
    clearInterval(this.#timer)
    for (const watcher of [...this.#watchers]) watcher.end()
  }

  #sweep(): void {
    // Monotonic: a step of the wall clock must not end every watch.
    const nowMs = performance.now()
    for (const watcher of this.#watchers) {
      if (watcher.deadlineMs <= nowMs) watcher.end()
      else if (watcher.nextBookmarkMs <= nowMs) {
        watcher.nextBookmarkMs = nowMs + bookmarkEveryMs
        if (watcher.wantsBookmarks) watcher.bookmark(this.#store.revision)
      }
    }
  }
}
