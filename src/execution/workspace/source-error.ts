/** Why a source could not be resolved or fetched, for machines. */
export type SourceErrorReason =
  /** The source is invalid on every worker; see `validateSource`. */
  | 'InvalidSource'
  /** The directory, repository, branch, tag or commit does not exist. */
  | 'SourceNotFound'
  /** This worker may not read the path. */
  | 'SourceNotAllowed'
  /** The repository, or the network on the way to it, does not work at the moment. */
  | 'SourceUnavailable'
  | 'SourceAuthFailed'
  /** The files of a path source have changed since the revision was computed. */
  | 'SourceChanged'

/** A source that could not be resolved or fetched. Its message names the field, the value and what is allowed, and no secret. */
export class SourceError extends Error {
  override readonly name = 'SourceError'
  readonly reason: SourceErrorReason
  /** Such as `spec.source.git.url`. */
  readonly field: string
  /** False when the same source will fail in the same way. */
  readonly retryable: boolean

  constructor(reason: SourceErrorReason, field: string, message: string, options: { cause?: unknown } = {}) {
    super(`${field}: ${message}`, options.cause === undefined ? undefined : { cause: options.cause })
    this.reason = reason
    this.field = field
    this.retryable = reason !== 'InvalidSource' && reason !== 'SourceNotAllowed'
  }
}
