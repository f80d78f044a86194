import { StatusError } from '../../object/index.ts'
import type { StoredEvent, Table } from '../storage/index.ts'
import type { Watcher } from './watcher.ts'

/** The watchers of one table, and its events that were not delivered yet. */
export class TableWatchers {
  readonly #table: Table
  readonly #watchers = new Set<Watcher>()
  readonly #onPending: (watchers: TableWatchers) => void
  readonly #onError: (error: unknown) => void
  #pending: StoredEvent[] = []
  #isDelivering = false

  /** @param onPending called for every commit; {@link deliver} must follow. */
  constructor(table: Table, onPending: (watchers: TableWatchers) => void, onError: (error: unknown) => void) {
    this.#table = table
    this.#onPending = onPending
    this.#onError = onError
    table.listeners.add(this.#listener)
  }

  get size(): number {
    return this.#watchers.size
  }

  /** True when every event was delivered: only then is a bookmark correct. */
  get isIdle(): boolean {
    return this.#pending.length === 0 && !this.#isDelivering
  }

  /** `watcher` starts at the current revision, so it must not get the pending events. */
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

  /** Delivers the pending events, to one watcher per step. Events committed between the steps wait for the next call. */
  *deliver(): Generator<Watcher> {
    const events = this.#pending
    this.#pending = []
    if (events.length === 0) return
    this.#isDelivering = true
    for (const watcher of [...this.#watchers]) {
      try {
        watcher.deliver(events)
      } catch (error) {
        // An error of one watch must not stop the others.
        this.#onError(error)
        watcher.end(new StatusError('InternalError', 'the event could not be sent: see the log of the server').toStatus())
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
