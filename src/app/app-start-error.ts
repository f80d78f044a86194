/** The cause: the data directory, or an address to listen on. */
export type AppStartErrorKind = 'DataDirectory' | 'Listen'

/** The all-in-one process cannot start. The message states the cause, `hint` the remedy. */
export class AppStartError extends Error {
  override readonly name = 'AppStartError'
  readonly kind: AppStartErrorKind
  readonly hint: string

  constructor(kind: AppStartErrorKind, message: string, hint: string, cause?: unknown) {
    super(message, { cause })
    this.kind = kind
    this.hint = hint
  }
}
