/**
 * The cause: the data directory, an address to listen on, the CRDs of the API server, processes that share the work of this one, a file that an
 * option names, or the Partition that it works for.
 */
export type AppStartErrorKind = 'DataDirectory' | 'Listen' | 'Crds' | 'Shards' | 'Configuration' | 'Partition'

/** A process cannot start. The message states the cause, `hint` the remedy unless the message has it. */
export class AppStartError extends Error {
  override readonly name = 'AppStartError'
  readonly kind: AppStartErrorKind
  readonly hint: string | undefined

  constructor(kind: AppStartErrorKind, message: string, hint: string | undefined, cause?: unknown) {
    super(message, { cause })
    this.kind = kind
    this.hint = hint
  }
}

/** Another process uses the data directory. Nothing was written to it, its log included. */
export class DataInUseError extends AppStartError {
  constructor(message: string, hint: string | undefined, cause?: unknown) {
    super('DataDirectory', message, hint, cause)
  }
}
