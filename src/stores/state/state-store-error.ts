/**
 * Why the state store could not do what was asked. Code decides by `code`; `message` is for people.
 * - `StateKeyMismatch`: the key does not open this store. Nothing was changed.
 * - `DataTooNew`: a newer Oarlock wrote this store. Nothing was changed.
 * - `InUse`: another process has this store open.
 * - `TooLarge`: the content is over `limits.maxBytes`.
 * - `DiskFull`, `QuotaExceeded`: no room on the disk, or over `limits.totalBytes`. What was there before is still there; works again once there is room.
 * - `Overloaded`: more bytes are waiting for the disk than `limits.pendingBytes`. Try again.
 * - `Corrupt`: what is stored is not what was written.
 * - `InvalidArgument`: a bug in the caller.
 * - `Unavailable`: any other failure of the disk, or the store is closed.
 */
export type StateStoreErrorCode =
  | 'StateKeyMismatch'
  | 'DataTooNew'
  | 'InUse'
  | 'TooLarge'
  | 'DiskFull'
  | 'QuotaExceeded'
  | 'Overloaded'
  | 'Corrupt'
  | 'InvalidArgument'
  | 'Unavailable'

/** A failed call of the state store. Refusals (a held lock, an old epoch) are results and never come as this. */
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

/** Says what an error of node:sqlite means for the caller; errors that are typed already pass unchanged. */
export function toStateStoreError(error: unknown, doing: string): StateStoreError {
  if (error instanceof StateStoreError) return error
  const { errcode, code, message } = error as { errcode?: number; code?: string; message?: string }
  const options = { cause: error }
  // SQLite's extended codes carry the primary code in their low byte.
  switch (errcode === undefined ? undefined : errcode & 0xff) {
    case sqliteFull:
      return new StateStoreError('DiskFull', `no room on the disk for ${doing}; free some space, nothing stored before was lost`, options)
    case sqliteBusy:
      return new StateStoreError('InUse', `the state store is open in another process, which must stop before ${doing}`, options)
    case sqliteCorrupt:
    case sqliteNotADatabase:
      return new StateStoreError('Corrupt', `the state store cannot be read while ${doing}: ${message}`, options)
  }
  if (code === 'ENOSPC') return new StateStoreError('DiskFull', `no room on the disk for ${doing}`, options)
  return new StateStoreError('Unavailable', `the state store failed while ${doing}: ${message ?? String(error)}`, options)
}
