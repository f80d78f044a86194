import type { StoredEntry } from './entry.ts'
import type { Table } from './table.ts'
import type { Write } from './write-queue.ts'

/** The newest version of an object that is not on disk yet. `sinceMs` is when the first version since the stored one was acknowledged. */
export type UnsavedEntry = { readonly table: Table; readonly sinceMs: number; entry: StoredEntry }

/** A revision up to which a table may be written without the disk, or which the clock of this server may show; 0 removes the reservation. */
export type Reservation = readonly [of: { readonly name: string }, revision: number]

/** What the storage thread is writing. */
export type Commit = {
  readonly saved: readonly UnsavedEntry[]
  readonly reservations: readonly Reservation[]
  readonly ended: PromiseWithResolvers<void>
}

/**
 * Writes that are acknowledged and shown to watchers before they are on disk: renewals of a Lease by its holder, which are most writes
 * of an idle cluster and worth nothing after some seconds. They are the one exception to invariants 5 and 6, and bounded so:
 *
 * - Only the newest version of an object is kept for the disk, and it is written within `maxAgeMs` or when the store closes.
 * - A table's revisions are reserved on disk before they are used without it. After a crash the reservation is found: every later
 *   revision is above it, whatever the clock shows, and a watch or list from before it gets 410 Gone, because its events may be lost.
 * - Clean shutdown removes the reservations, so nothing is dropped then.
 *
 * What a lost version means for its kind is decided above the store, see `lifecycle/renew-leases.ts`.
 */
export class DeferredWrites {
  readonly #maxAgeMs: number
  /** By row id, the oldest first. */
  readonly #unsaved = new Map<number, UnsavedEntry>()
  /** On disk. */
  readonly #reserved = new Map<string, number>()

  constructor(maxAgeMs: number) {
    this.#maxAgeMs = maxAgeMs
  }

  get size(): number {
    return this.#unsaved.size
  }

  /** How often to call {@link takeDue}: it takes what would become too old until the next call. */
  get intervalMs(): number {
    return this.#maxAgeMs / 4
  }

  /** True if a write can be made visible without the disk: its revision cannot be assigned again after a crash. */
  mayApply({ table, last, isDeferred }: Write): boolean {
    return isDeferred && this.#isReserved(table, last.revision)
  }

  /** The reservations to extend for the deferred ones of `writes`. */
  newReservations(writes: readonly Write[], revisionAfterMs: (ms: number) => number): Reservation[] {
    const tables = new Set<Table>()
    for (const { table, isDeferred } of writes) if (isDeferred) tables.add(table)
    // Extended when half of it is used, by a commit that happens anyway.
    return [...tables]
      .filter(table => !this.#isReserved(table, revisionAfterMs(this.#maxAgeMs)))
      .map(table => [table, revisionAfterMs(this.#maxAgeMs * 2)])
  }

  /** A batch has ended: the newest version of each of its objects is on disk (or deleted from it), or unsaved. */
  complete(batch: readonly Write[], nowMs: number): void {
    for (const { table, last, isDeferred } of batch) {
      if (isDeferred) this.#add(table, last, nowMs)
      else this.#unsaved.delete(last.id)
    }
  }

  hasDue(nowMs: number): boolean {
    const [oldest] = this.#unsaved.values()
    return oldest !== undefined && this.#isDue(oldest, nowMs)
  }

  /** Removes and returns the entries that must be written now, at most `limit`. */
  takeDue(nowMs: number, limit: number): UnsavedEntry[] {
    const due: UnsavedEntry[] = []
    for (const unsaved of this.#unsaved.values()) {
      if (due.length === limit || !this.#isDue(unsaved, nowMs)) break
      due.push(unsaved)
      this.#unsaved.delete(unsaved.entry.id)
    }
    return due
  }

  /** Removes and returns everything, when the store closes. */
  takeAll(): UnsavedEntry[] {
    const all = [...this.#unsaved.values()]
    this.#unsaved.clear()
    return all
  }

  /** These entries could not be written. Those that are still the newest version are written later. */
  giveBack(entries: readonly UnsavedEntry[]): void {
    for (const { table, entry, sinceMs } of entries) {
      if (table.get(entry.key) === entry) this.#add(table, entry, sinceMs)
    }
  }

  /** These reservations are on disk. */
  reserve(reservations: readonly Reservation[]): void {
    for (const [{ name }, revision] of reservations) this.#reserved.set(name, revision)
  }

  /** What removes every reservation from the disk, in the commit that saves what is unsaved. */
  release(): Reservation[] {
    return [...this.#reserved.keys()].map(name => [{ name }, 0])
  }

  #add(table: Table, entry: StoredEntry, sinceMs: number): void {
    const unsaved = this.#unsaved.get(entry.id)
    if (unsaved) unsaved.entry = entry
    else this.#unsaved.set(entry.id, { table, entry, sinceMs })
  }

  #isReserved(table: Table, revision: number): boolean {
    return revision <= (this.#reserved.get(table.name) ?? 0)
  }

  #isDue({ sinceMs }: UnsavedEntry, nowMs: number): boolean {
    return nowMs - sinceMs >= this.#maxAgeMs - this.intervalMs
  }
}
