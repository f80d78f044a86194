import { randomBytes } from 'node:crypto'
import type { StoredEntry } from '../storage/index.ts'

type Snapshot = { scope: string; entries: readonly StoredEntry[]; expiresMs: number }

const snapshotTtlMs = 5 * 60_000
const finishedTtlMs = 30_000
const maxSnapshots = 128

/**
 * Snapshots of paged lists in progress. Entries are immutable, so a snapshot is an array of references: cheap and exactly consistent.
 * Snapshots expire after five minutes, or when there are too many (invariant 10). Later pages are served from the history of the
 * table, or get 410 when it does not go back that far.
 */
export class PagedLists {
  readonly #snapshots = new Map<string, Snapshot>()

  /**
   * Stores the entries of a list; returns the id of the snapshot.
   * @param scope identifies the list: a token of one list cannot read the pages of another.
   */
  save(scope: string, entries: readonly StoredEntry[], nowMs: number): string {
    for (const [id, { expiresMs }] of this.#snapshots) if (expiresMs <= nowMs) this.#snapshots.delete(id)
    const [oldest] = this.#snapshots.keys()
    if (this.#snapshots.size >= maxSnapshots && oldest !== undefined) this.#snapshots.delete(oldest)
    const id = randomBytes(12).toString('base64url')
    this.#snapshots.set(id, { scope, entries, expiresMs: nowMs + snapshotTtlMs })
    return id
  }

  /** The entries of a snapshot; undefined when it has expired. */
  find(id: string | undefined, scope: string, nowMs: number): readonly StoredEntry[] | undefined {
    const snapshot = id === undefined ? undefined : this.#snapshots.get(id)
    return snapshot && snapshot.scope === scope && snapshot.expiresMs > nowMs ? snapshot.entries : undefined
  }

  /** After the last page: the snapshot expires soon, but a client whose connection broke can still repeat a page. */
  finish(id: string, nowMs: number): void {
    const snapshot = this.#snapshots.get(id)
    if (snapshot) snapshot.expiresMs = Math.min(snapshot.expiresMs, nowMs + finishedTtlMs)
  }
}
