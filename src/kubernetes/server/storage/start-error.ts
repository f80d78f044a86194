export type ServerStartErrorCode =
  | 'DataTooNew'
  | 'DataInUse'
  | 'AddressInUse'
  /** It is not of this machine, or not for this user. */
  | 'AddressInvalid'
  | 'DiskFull'
  | 'DataCorrupt'
  /** The database is gone, though a server has run on this data directory before. */
  | 'DataMissing'
  | 'DataDirectoryUnwritable'

/** Why a server did not start. `code` is what programs decide by; the message says what a person can do. */
export class ServerStartError extends Error {
  override readonly name = 'ServerStartError'
  readonly code: ServerStartErrorCode

  constructor(code: ServerStartErrorCode, message: string, options?: { cause?: unknown }) {
    super(message, options)
    this.code = code
  }

  /** The address to listen on is the trouble; otherwise the data directory is. */
  get isAddressError(): boolean {
    return this.code === 'AddressInUse' || this.code === 'AddressInvalid'
  }
}
