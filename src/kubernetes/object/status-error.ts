/** Kubernetes' machine-readable reasons, with their HTTP codes. */
export const statusCodes = {
  BadRequest: 400,
  Unauthorized: 401,
  Forbidden: 403,
  NotFound: 404,
  MethodNotAllowed: 405,
  NotAcceptable: 406,
  AlreadyExists: 409,
  Conflict: 409,
  Expired: 410,
  Gone: 410,
  RequestEntityTooLarge: 413,
  UnsupportedMediaType: 415,
  Invalid: 422,
  TooManyRequests: 429,
  InternalError: 500,
  ServiceUnavailable: 503,
  ServerTimeout: 500,
  Timeout: 504,
} as const

export type StatusReason = keyof typeof statusCodes

/** Why one field was rejected. `field` is a path such as `spec.source.git.url`. */
export type StatusCause = { reason: FieldErrorReason; message: string; field: string }

export type FieldErrorReason =
  | 'FieldValueRequired'
  | 'FieldValueInvalid'
  | 'FieldValueNotSupported'
  | 'FieldValueDuplicate'
  | 'FieldValueForbidden'
  | 'FieldValueTooLong'
  | 'FieldValueTooMany'
  | 'FieldValueTypeInvalid'
  | 'FieldValueNotFound'
  | 'FieldManagerConflict'
  | 'UnexpectedServerResponse'
  | 'ResourceVersionTooLarge'

export type StatusDetails = {
  name?: string
  group?: string
  kind?: string
  uid?: string
  causes?: StatusCause[]
  retryAfterSeconds?: number
}

/** The `Status` object in the response to a failed request. */
export type Status = {
  kind: 'Status'
  apiVersion: 'v1'
  metadata: { resourceVersion?: string; continue?: string }
  status: 'Success' | 'Failure'
  message?: string
  reason?: StatusReason | (string & {})
  details?: StatusDetails
  code: number
}

/**
 * A failed Kubernetes request: servers return it and clients throw it.
 * Code depends on `reason`; `message` is for people.
 */
export class StatusError extends Error {
  override readonly name = 'StatusError'
  readonly code: number
  readonly reason: StatusReason | (string & {})
  readonly details: StatusDetails | undefined
  /** Where a list whose revision expired may continue, with current objects. */
  readonly continueToken: string | undefined

  constructor(
    reason: StatusReason | (string & {}),
    message: string,
    options: { code?: number; details?: StatusDetails; continueToken?: string; cause?: unknown } = {},
  ) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause })
    this.reason = reason
    this.code = options.code ?? (statusCodes as Record<string, number>)[reason] ?? 500
    this.details = options.details
    this.continueToken = options.continueToken
  }

  static fromStatus(status: Status): StatusError {
    const { reason = 'InternalError', message = 'the server gave no message', code, details, metadata } = status
    return new StatusError(reason, message, { code, details, continueToken: metadata?.continue || undefined })
  }

  toStatus(): Status {
    const { message, reason, code, details, continueToken } = this
    const metadata = continueToken ? { continue: continueToken } : {}
    return { kind: 'Status', apiVersion: 'v1', metadata, status: 'Failure', message, reason, ...(details && { details }), code }
  }
}

/** True when `error` is a {@link StatusError} with this reason, as in `isReason(error, 'NotFound')`. */
export function isReason(error: unknown, ...reasons: StatusReason[]): error is StatusError {
  return error instanceof StatusError && (reasons as string[]).includes(error.reason)
}

type Named = { group: string; plural: string; kind?: string }
const qualified = ({ group, plural }: Named) => (group ? `${plural}.${group}` : plural)

export function notFound(resource: Named, name: string): StatusError {
  return new StatusError('NotFound', `${qualified(resource)} "${name}" not found`, {
    details: { name, group: resource.group || undefined, kind: resource.plural },
  })
}

export function alreadyExists(resource: Named, name: string): StatusError {
  return new StatusError('AlreadyExists', `${qualified(resource)} "${name}" already exists`, {
    details: { name, group: resource.group || undefined, kind: resource.plural },
  })
}

export function conflict(resource: Named, name: string, why: string): StatusError {
  return new StatusError('Conflict', `Operation cannot be fulfilled on ${qualified(resource)} "${name}": ${why}`, {
    details: { name, group: resource.group || undefined, kind: resource.plural },
  })
}

export function badRequest(message: string): StatusError {
  return new StatusError('BadRequest', message)
}

/** 422 for an invalid query or DeleteOptions body; `kind` is that of the options, such as `CreateOptions`. */
export function invalidOptions(kind: string, causes: StatusCause[]): StatusError {
  return invalid({ group: 'meta.k8s.io', plural: '', kind }, '', causes)
}

/** An object can be invalid in every one of its fields; more causes than this are of no use. */
const maxCauses = 1_000
const maxCausesLength = 256 * 1024
const maxNameLength = 1_024

/** 422 with one cause per field, worded as in Kubernetes, truncated to a readable length. */
export function invalid(resource: Required<Named>, name: string, allCauses: readonly StatusCause[]): StatusError {
  const causes: StatusCause[] = []
  let length = 0
  for (const cause of allCauses) {
    length += cause.field.length + cause.message.length
    if (causes.length > 0 && (causes.length === maxCauses || length > maxCausesLength)) break
    causes.push(cause)
  }
  // Kubernetes validates some metadata twice and lists both causes; the message has it once.
  const texts = [...new Set(causes.map(({ field, message }) => `${field}: ${message}`))]
  if (causes.length < allCauses.length) texts.push(`and ${allCauses.length - causes.length} more`)
  const text = texts.length === 1 ? texts[0] : `[${texts.join(', ')}]`
  const kind = resource.group ? `${resource.kind}.${resource.group}` : resource.kind
  const shortName = name.length > maxNameLength ? `${name.slice(0, maxNameLength)}…` : name
  return new StatusError('Invalid', `${kind} "${shortName}" is invalid: ${text}`, {
    details: { name: shortName || undefined, group: resource.group || undefined, kind: resource.kind, causes },
  })
}
