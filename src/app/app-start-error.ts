/** What is in the way: the data directory, or an address to listen on. */
export type AppStartErrorKind = 'DataDirectory' | 'Listen'

/** Why the all-in-one process did not start. The message says what is wrong, `hint` what to do. */
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
