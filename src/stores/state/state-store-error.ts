/**
 * Why a call of the state store failed. Callers check `code`; `message` is for users.
 * - `StateKeyMismatch`: the key cannot decrypt this store. Nothing was changed.
 * - `DataTooNew`: a newer version of Oarlock wrote this store. Nothing was changed.
 * - `InUse`: another process has this store open.
 * - `PlanExists`: another plan is stored under this digest. Nothing was changed.
 * - `TooLarge`: the content is over `limits.maxBytes`, or a journal over its limits.
 * - `JournalConflict`: another entry is stored under a sequence id. Nothing was changed.
 * - `JournalUnreadable`: the state has a journal that this version of Oarlock does not understand completely. It is kept as it is.
 * - `DecryptionFailed`: a value was not encrypted for this Stack.
 * - `DiskFull`, `QuotaExceeded`: the disk is full, or `limits.totalBytes` is reached. Stored data is not affected; writes work again once there is space.
 * - `Overloaded`: more than `limits.pendingBytes` are waiting for the disk. Retry.
 * - `Corrupt`: the stored data differs from what was written.
 * - `InvalidArgument`: a bug in the caller.
 * - `Unavailable`: any other disk failure, or the store is closed.
 */
export type StateStoreErrorCode =
  | 'StateKeyMismatch'
  | 'DataTooNew'
  | 'InUse'
  | 'PlanExists'
  | 'TooLarge'
  | 'JournalConflict'
  | 'JournalUnreadable'
  | 'DecryptionFailed'
  | 'DiskFull'
  | 'QuotaExceeded'
  | 'Overloaded'
  | 'Corrupt'
  | 'InvalidArgument'
  | 'Unavailable'

/** A failed call of the state store. Rejections (a held lock, an old epoch) are results, not errors. */
export class StateStoreError extends Error {
  override readonly name = 'StateStoreError'
  readonly code: StateStoreErrorCode

  constructor(code: StateStoreErrorCode, message: string, options?: { cause?: unknown }) {
    super(message, options)
    this.code = code
  }
}

const sqliteFull = 13
const sqliteBusy = 5
const sqliteCorrupt = 11
const sqliteNotADatabase = 26

/** Converts an error of node:sqlite; a {@link StateStoreError} is returned unchanged. `doing` completes "failed while …". */
export function toStateStoreError(error: unknown, doing: string): StateStoreError {
  if (error instanceof StateStoreError) return error
  const { errcode, code, message } = error as { errcode?: number; code?: string; message?: string }
  const options = { cause: error }
  // SQLite's extended codes carry the primary code in their low byte.
  switch (errcode === undefined ? undefined : errcode & 0xff) {
    case sqliteFull:
      return new StateStoreError('DiskFull', `the disk is full while ${doing}; free some space, stored data is not affected`, options)
    case sqliteBusy:
      return new StateStoreError('InUse', `another process uses the state store (failed while ${doing}); stop that process first`, options)
    case sqliteCorrupt:
    case sqliteNotADatabase:
      return new StateStoreError('Corrupt', `the state store cannot be read while ${doing}: ${message}`, options)
  }
  if (code === 'ENOSPC') return new StateStoreError('DiskFull', `the disk is full while ${doing}; free some space`, options)
  return new StateStoreError('Unavailable', `the state store failed while ${doing}: ${message ?? String(error)}`, options)
}
