import { StatusError } from '../../object/index.ts'
import type { StoredEvent, Table } from '../storage/index.ts'
import type { Watcher } from './watcher.ts'

/** The watchers of one table, and its events that they have not been handed yet. */
export class TableWatchers {
  readonly #table: Table
  readonly #watchers = new Set<Watcher>()
  readonly #onPending: (watchers: TableWatchers) => void
  readonly #onError: (error: unknown) => void
  #pending: StoredEvent[] = []
  #isDelivering = false

  /** @param onPending called with every commit; {@link deliver} must follow. */
  constructor(table: Table, onPending: (watchers: TableWatchers) => void, onError: (error: unknown) => void) {
    this.#table = table
    this.#onPending = onPending
    this.#onError = onError
    table.listeners.add(this.#listener)
  }

  get size(): number {
    return this.#watchers.size
  }

  /** True when every watcher has been handed all there is: only then does a bookmark say the truth. */
  get isIdle(): boolean {
    return this.#pending.length === 0 && !this.#isDelivering
  }

  /** `watcher` starts from what is committed now, so what waits here is not for it. */
  add(watcher: Watcher): void {
    watcher.skippedEvents = this.#pending.length
    this.#watchers.add(watcher)
  }

  remove(watcher: Watcher): void {
    this.#watchers.delete(watcher)
  }

  [Symbol.iterator](): IterableIterator<Watcher> {
    return this.#watchers.values()
  }

  release(): void {
    this.#table.listeners.delete(this.#listener)
  }

  /** Hands what waits to each watcher, one for each step; what is committed between the steps waits for the next time. */
  *deliver(): Generator<Watcher> {
    const events = this.#pending
    this.#pending = []
    if (events.length === 0) return
    this.#isDelivering = true
    for (const watcher of [...this.#watchers]) {
      try {
        watcher.deliver(events)
      } catch (error) {
        // One watch less is better than none that goes on.
        this.#onError(error)
        watcher.end(new StatusError('InternalError', 'the event could not be shown: see the log of the server').toStatus())
      }
      yield watcher
    }
    this.#isDelivering = false
    for (const event of events) event.encoded = undefined
  }

  readonly #listener = (events: readonly StoredEvent[]) => {
    for (const event of events) this.#pending.push(event)
    this.#onPending(this)
  }
}
