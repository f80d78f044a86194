/** Why a source could not be resolved or fetched, for machines. */
export type SourceErrorReason =
  /** Breaks a rule that needs no look at the world; see `sourceErrors`. */
  | 'InvalidSource'
  /** No such directory, repository, branch, tag or commit. */
  | 'SourceNotFound'
  /** Outside of what this worker may read. */
  | 'SourceNotAllowed'
  /** The other side, or something on the way to it, does not work right now. */
  | 'SourceUnavailable'
  | 'SourceAuthFailed'
  /** A path source is no longer what it was when the revision was taken. */
  | 'SourceChanged'

/** A source that could not be resolved or fetched. Its message names the field, what came and what is allowed, and no secret. */
export class SourceError extends Error {
  override readonly name = 'SourceError'
  readonly reason: SourceErrorReason
  /** Such as `spec.source.git.url`. */
  readonly field: string
  /** False: the same source will fail the same way. */
  readonly retryable: boolean

  constructor(reason: SourceErrorReason, field: string, message: string, options: { cause?: unknown } = {}) {
    super(`${field}: ${message}`, options.cause === undefined ? undefined : { cause: options.cause })
    this.reason = reason
    this.field = field
    this.retryable = reason !== 'InvalidSource' && reason !== 'SourceNotAllowed'
  }
}
