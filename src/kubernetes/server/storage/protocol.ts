import type { Corruption } from './read-rows.ts'
import type { ServerStartErrorCode } from './start-error.ts'

/** One row of the database. The key is also part of the text; both must agree. */
export type Row = [id: number, resource: string, key: string, revision: number, text: string]

/** Rows read at startup, column by column like a {@link CommitBatch}. */
export type RowsBatch = {
  readonly type: 'rows'
  readonly resources: readonly string[]
  readonly numbers: Float64Array
  readonly keys: readonly string[]
  readonly texts: readonly string[]
}

/** What the startup check of the database found, apart from its rows. */
export type OpenReport = {
  /** The format found on disk; 0 for a new database. */
  readonly foundFormat: number
  readonly corruptions: readonly Corruption[]
  /** Bytes that compaction returned to the disk. */
  readonly compactedBytes: number
  /** Why some rows are still in clear text or encrypted with an old key: the next start tries again. */
  readonly reencryptionError: string | undefined
}

/**
 * The writes of one commit, column by column: copying one object per write between threads costs more than copying its text.
 * `numbers[3 * i]` and the two after it are the id of write `i`, its revision, and the index of its resource. `keys[i]` is set for a
 * new row and '' otherwise. `texts[i]` is '' when the row is deleted. `reservations` are by name of the resource, see `deferred-writes.ts`.
 */
export type CommitBatch = {
  readonly type: 'commit'
  readonly resources: readonly string[]
  readonly numbers: Float64Array
  readonly keys: readonly string[]
  readonly texts: readonly string[]
  readonly reservations: readonly (readonly [resource: string, revision: number])[]
}

/** What a rotation of the encryption key did. */
export type KeyRotation = {
  /** Name of the key that encrypts from now on. */
  readonly key: string
  /** Names of the keys that are kept for backups. */
  readonly olderKeys: readonly string[]
  /** Number of encrypted objects. */
  readonly objects: number
}

/** Work besides commits, one at a time. */
export type Task = { type: 'backup'; path: string } | { type: 'rotateKey'; removesOldKeys: boolean }

export type ToStorageThread = CommitBatch | Task | { type: 'close' }

/** The end of a successful start: every row was sent before it. */
export type ReadyMessage = {
  readonly type: 'ready'
  /** The newest revision of each resource, deletions included. */
  readonly revisions: readonly [resource: string, revision: number][]
  /** There is no history up to this revision: a restore set it. 0 without one. */
  readonly floor: number
  /** Revisions up to these may have been assigned to writes that are lost, by resource. Empty after a clean shutdown. */
  readonly reservations: readonly (readonly [resource: string, revision: number])[]
  readonly report: OpenReport
}

export type FromStorageThread =
  | RowsBatch
  | ReadyMessage
  | { type: 'startFailed'; code: ServerStartErrorCode; message: string }
  | { type: 'committed'; durationMs: number }
  | { type: 'commitFailed'; errcode: number; message: string }
  | { type: 'taskEnded'; error: string | undefined; rotation?: KeyRotation }
  | { type: 'closed' }

export type StorageThreadOptions = {
  file: string
  /** See `encryption-config.ts`. */
  encryptionConfig: string
  synchronous: 'FULL' | 'OFF'
  /** How many batches of rows the main thread has loaded: the storage thread reads only a few ahead, so the database is never in memory twice. */
  loadedBatches: Int32Array<SharedArrayBuffer>
}
