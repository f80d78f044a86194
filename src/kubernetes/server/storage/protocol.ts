import type { Corruption } from './read-rows.ts'
import type { ServerStartErrorCode } from './start-error.ts'

/** One row of the database. Its key stands in its text too, and both must agree. */
export type Row = [id: number, resource: string, key: string, revision: number, text: string]

/** Rows read at the start, column by column like a {@link CommitBatch}. */
export type RowsBatch = {
  readonly type: 'rows'
  readonly resources: readonly string[]
  readonly numbers: Float64Array
  readonly keys: readonly string[]
  readonly texts: readonly string[]
}

/** What the check of the database at the start found beside its rows. */
export type OpenReport = {
  /** The format that was found; 0 for a new database. */
  readonly foundFormat: number
  readonly corruptions: readonly Corruption[]
  /** What compaction gave back to the disk, in bytes. */
  readonly compactedBytes: number
}

/**
 * The writes of one commit, column by column: an object for each write costs more to copy between threads than its text.
 * Write `i` has its id, its revision and the index of its resource at `numbers[3 * i]` and after; a key when the row is new, else '';
 * a text, or '' when the row is deleted.
 */
export type CommitBatch = {
  readonly type: 'commit'
  readonly resources: readonly string[]
  readonly numbers: Float64Array
  readonly keys: readonly string[]
  readonly texts: readonly string[]
}

export type ToStorageThread = CommitBatch | { type: 'backup'; path: string } | { type: 'close' }

export type FromStorageThread =
  | RowsBatch
  | { type: 'ready'; revisions: [resource: string, revision: number][]; floor: number; report: OpenReport }
  | { type: 'refused'; code: ServerStartErrorCode; message: string }
  | { type: 'committed'; durationMs: number }
  | { type: 'failed'; errcode: number; message: string }
  | { type: 'backedUp'; error: string | undefined }
  | { type: 'closed' }

export type StorageThreadOptions = {
  file: string
  synchronous: 'FULL' | 'OFF'
  /** How many batches of rows were taken over: the thread reads only a few ahead, or the whole database would wait in memory. */
  loadedBatches: Int32Array<SharedArrayBuffer>
}
