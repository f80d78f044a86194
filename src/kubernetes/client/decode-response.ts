import { type Status, StatusError, type StatusReason } from '../object/index.ts'
import type { TransportResponse } from './transport.ts'

/** Identifies a request in error messages: without headers, since they contain the token. */
export type RequestTarget = { method: string; url: string }

/** Turns a response of 300 and above into the error to throw: the server's own Status, or one that describes the response. */
export function toStatusError(response: TransportResponse, target: RequestTarget): StatusError {
  const retryAfterSeconds = Number.parseInt(String(response.headers['retry-after'] ?? ''), 10)
  const status = parseStatus(response.body)
  if (status?.code === 404 && status.message === 'the server could not find the requested resource') return resourceNotServed(target)
  if (status) {
    const details = Number.isNaN(retryAfterSeconds) ? status.details : { retryAfterSeconds, ...status.details }
    return StatusError.fromStatus({ ...status, code: status.code || response.status, ...(details && { details }) })
  }
  return unexpectedResponse(response, target, Number.isNaN(retryAfterSeconds) ? undefined : retryAfterSeconds)
}

/** Parses the body of a successful response. @throws {StatusError} if it is not JSON, such as the login page of a proxy. */
export function parseJsonBody(response: TransportResponse, target: () => RequestTarget): unknown {
  try {
    return JSON.parse(response.body)
  } catch {
    throw unexpectedResponse(response, target(), undefined)
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

/** For the two responses that Kubernetes has for an unknown kind, with and without others in its group: neither names the kind. */
function resourceNotServed({ method, url }: RequestTarget): StatusError {
  return new StatusError('NotFound', `${method} ${url}: the server does not serve this resource, is its CRD installed?`, { code: 404 })
}

function unexpectedResponse(
  { status, headers, body }: TransportResponse,
  { method, url }: RequestTarget,
  retryAfterSeconds: number | undefined,
): StatusError {
  if (status === 404 && body.trim() === '404 page not found') return resourceNotServed({ method, url })
  const type = String(headers['content-type'] ?? 'no content type').split(';')[0]
  // The cause has more of it than the message: other services on this address have errors of their own, which callers can decode.
  const text = body.replace(/\s+/g, ' ').trim().slice(0, 2_000)
  const redirect = status >= 300 && status < 400 && headers.location ? ` to ${String(headers.location).split('?')[0]}` : ''
  const message =
    `${method} ${url} returned ${status}${redirect} with ${type} instead of a Kubernetes object: ${JSON.stringify(text.slice(0, 200))}. ` +
    'is this the address of an API server, and is there a proxy or login page in between?'
  return new StatusError(reasons[status] ?? 'InternalError', message, {
    code: status < 400 ? 500 : status,
    details: {
      causes: [{ reason: 'UnexpectedServerResponse', message: text, field: '' }],
      ...(retryAfterSeconds !== undefined && { retryAfterSeconds }),
    },
  })
}

function parseStatus(body: string): Status | undefined {
  try {
    const value: unknown = JSON.parse(body)
    if (typeof value === 'object' && value !== null && (value as Status).kind === 'Status') return value as Status
  } catch {
    // Not JSON: the caller reports the body.
  }
  return undefined
}
