export type ServerStartErrorCode =
  | 'DataTooNew'
  | 'DataInUse'
  | 'AddressInUse'
  /** The address does not belong to this machine, or this user may not listen on it. */
  | 'AddressInvalid'
  | 'DiskFull'
  | 'DataCorrupt'
  /** The database is missing, although a server has run on this data directory before. */
  | 'DataMissing'
  /** Objects are encrypted with a key that is not in `keys/encryption-config.json`. */
  | 'EncryptionKeyMissing'
  | 'DataDirectoryUnwritable'
  /** The directory has other keys than those that its server must have in common with others. */
  | 'KeysDiffer'
  /** The audit policy cannot be used, or the audit log cannot be written. */
  | 'AuditInvalid'

/** Why a server did not start. `code` is for programs; the message tells people what to do. */
export class ServerStartError extends Error {
  override readonly name = 'ServerStartError'
  readonly code: ServerStartErrorCode

  constructor(code: ServerStartErrorCode, message: string, options?: { cause?: unknown }) {
    super(message, options)
    this.code = code
  }

  /** True when the cause is the listen address; otherwise it is the data directory. */
  get isAddressError(): boolean {
    return this.code === 'AddressInUse' || this.code === 'AddressInvalid'
  }
}
