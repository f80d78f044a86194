import type { ServerStartErrorCode } from './start-error.ts'

/** One row of the database; its key stands in its text too. */
export type Row = [id: number, resource: string, revision: number, text: string]

/** Rows read at the start, column by column like a {@link CommitBatch}. */
export type RowsBatch = {
  readonly type: 'rows'
  readonly resources: readonly string[]
  readonly numbers: Float64Array
  readonly texts: readonly string[]
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

export type ToWorker = CommitBatch | { type: 'close' }

export type FromWorker =
  | RowsBatch
  | { type: 'ready'; revisions: [resource: string, revision: number][] }
  | { type: 'refused'; code: ServerStartErrorCode; message: string }
  | { type: 'committed'; durationMs: number }
  | { type: 'failed'; errcode: number; message: string }
  | { type: 'closed' }

export type WorkerOptions = {
  file: string
  synchronous: 'FULL' | 'OFF'
  /** How many batches of rows were taken over: the thread reads only a few ahead, or the whole database would wait in memory. */
  takenBatches: Int32Array<SharedArrayBuffer>
}
