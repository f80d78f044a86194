import { randomBytes } from 'node:crypto'
import type { Entry } from '../storage/index.ts'

type Snapshot = { scope: string; entries: readonly Entry[]; expiresMs: number }

const snapshotTtlMs = 5 * 60_000
const finishedTtlMs = 30_000
const maxSnapshots = 128

/**
 * Lists under way, page by page. Entries never change, so a snapshot is an array of references: cheap to keep and
 * exactly consistent. They are dropped after five minutes, or when there are too many (invariant 10); a client that
 * comes later is served from the history of the table, or gets 410 when that does not go back so far.
 */
export class PagedLists {
  readonly #snapshots = new Map<string, Snapshot>()

  /**
   * Keeps what is left after the first page; returns the id of the snapshot.
   * @param scope says what was listed: nobody gets to see the pages of another list.
   */
  save(scope: string, entries: readonly Entry[], nowMs: number): string {
    for (const [id, { expiresMs }] of this.#snapshots) if (expiresMs <= nowMs) this.#snapshots.delete(id)
    const [oldest] = this.#snapshots.keys()
    if (this.#snapshots.size >= maxSnapshots && oldest !== undefined) this.#snapshots.delete(oldest)
    const id = randomBytes(12).toString('base64url')
    this.#snapshots.set(id, { scope, entries, expiresMs: nowMs + snapshotTtlMs })
    return id
  }

  /** The entries of a snapshot, if it is still kept. */
  find(id: string | undefined, scope: string, nowMs: number): readonly Entry[] | undefined {
    const snapshot = id === undefined ? undefined : this.#snapshots.get(id)
    return snapshot && snapshot.scope === scope && snapshot.expiresMs > nowMs ? snapshot.entries : undefined
  }

  /** After the last page: kept for a moment, so that a client whose connection broke may ask for a page again. */
  finish(id: string, nowMs: number): void {
    const snapshot = this.#snapshots.get(id)
    if (snapshot) snapshot.expiresMs = Math.min(snapshot.expiresMs, nowMs + finishedTtlMs)
  }
}
