import { type Status, StatusError, type StatusReason } from '../object/index.ts'

/** A finished answer. Header names are in lower case. */
export type RawResponse = { status: number; headers: Record<string, string | string[] | undefined>; body: string }

/** Describes what was asked, for errors: never with headers, since they hold the token. */
export type Asked = { method: string; url: string }

/** Turns an answer of 300 and above into the error to throw: the server's own Status, or one that says what came instead. */
export function errorOf(answer: RawResponse, asked: Asked): StatusError {
  const retryAfterSeconds = Number.parseInt(String(answer.headers['retry-after'] ?? ''), 10)
  const status = parseStatus(answer.body)
  if (status?.code === 404 && status.message === 'the server could not find the requested resource') return nothingServed(asked)
  if (status) {
    const details = Number.isNaN(retryAfterSeconds) ? status.details : { retryAfterSeconds, ...status.details }
    return StatusError.fromStatus({ ...status, code: status.code || answer.status, ...(details && { details }) })
  }
  return unexpected(answer, asked, Number.isNaN(retryAfterSeconds) ? undefined : retryAfterSeconds)
}

/** Parses the body of a successful answer. @throws {StatusError} if it is not JSON, such as the log-in page of a proxy. */
export function parseAnswer(answer: RawResponse, asked: () => Asked): unknown {
  try {
    return JSON.parse(answer.body)
  } catch {
    throw unexpected(answer, asked(), undefined)
  }
}

const reasons: Record<number, StatusReason> = {
  400: 'BadRequest',
  401: 'Unauthorized',
  403: 'Forbidden',
  404: 'NotFound',
  405: 'MethodNotAllowed',
  406: 'NotAcceptable',
  409: 'Conflict',
  410: 'Expired',
  413: 'RequestEntityTooLarge',
  415: 'UnsupportedMediaType',
  422: 'Invalid',
  429: 'TooManyRequests',
  503: 'ServiceUnavailable',
  504: 'Timeout',
}

/** For Kubernetes' two answers for a kind that it does not have, with or without others of its group: neither names it. */
function nothingServed({ method, url }: Asked): StatusError {
  return new StatusError('NotFound', `${method} ${url}: the server serves nothing there, is the CRD of this kind applied?`, { code: 404 })
}

function unexpected({ status, headers, body }: RawResponse, { method, url }: Asked, retryAfterSeconds: number | undefined): StatusError {
  if (status === 404 && body.trim() === '404 page not found') return nothingServed({ method, url })
  const type = String(headers['content-type'] ?? 'no content type').split(';')[0]
  const excerpt = body.replace(/\s+/g, ' ').trim().slice(0, 200)
  const where = status >= 300 && status < 400 && headers.location ? ` to ${String(headers.location).split('?')[0]}` : ''
  const message =
    `${method} ${url} answered ${status}${where} with ${type} instead of a Kubernetes object: ${JSON.stringify(excerpt)}. ` +
    'is the address the one of an API server, and is no proxy or log-in page in between?'
  return new StatusError(reasons[status] ?? 'InternalError', message, {
    code: status < 400 ? 500 : status,
    details: {
      causes: [{ reason: 'UnexpectedServerResponse', message: excerpt, field: '' }],
      ...(retryAfterSeconds !== undefined && { retryAfterSeconds }),
    },
  })
}

function parseStatus(body: string): Status | undefined {
  try {
    const value: unknown = JSON.parse(body)
    if (typeof value === 'object' && value !== null && (value as Status).kind === 'Status') return value as Status
  } catch {
    // Not JSON: the caller says what came.
  }
  return undefined
}
