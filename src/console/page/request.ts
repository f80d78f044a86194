import { apiPath, csrfHeader, type ErrorBody } from '../protocol/index.ts'

/** What the server answered, or that it could not be reached: then the code is 0. */
export class RequestError extends Error {
  override readonly name = 'RequestError'
  readonly code: number
  readonly reason: string
  /** The whole body, if it was JSON. */
  readonly body: unknown
  constructor({ code, reason, message }: ErrorBody, body?: unknown) {
    super(message)
    this.code = code
    this.reason = reason
    this.body = body
  }
}

/** Set by the session. */
export const credentials = { csrfToken: '', onSignedOut: (_error: RequestError) => {} }

/**
 * Sends a request to the console's API and returns its JSON; undefined if it has none.
 * @throws {RequestError} for every status that is not 2xx, and when the server cannot be reached.
 */
export async function request<T>(method: 'GET' | 'POST' | 'PUT' | 'DELETE', path: string, body?: unknown): Promise<T> {
  const headers: Record<string, string> = { accept: 'application/json' }
  if (method !== 'GET') headers[csrfHeader] = credentials.csrfToken
  if (body !== undefined) headers['content-type'] = 'application/json'
  let response: Response
  try {
    response = await fetch(apiPath + path, { method, headers, body: body === undefined ? undefined : JSON.stringify(body) })
  } catch {
    throw new RequestError({ code: 0, reason: 'Unreachable', message: 'the server cannot be reached' })
  }
  const value: unknown = response.headers.get('content-type')?.includes('json') ? await response.json().catch(() => undefined) : undefined
  if (response.ok) return value as T
  const { reason, message } = (value ?? {}) as Partial<ErrorBody>
  const error = new RequestError(
    { code: response.status, reason: reason ?? response.statusText, message: message ?? `the server answered ${response.status}` },
    value,
  )
  if (error.code === 401 && path !== 'session') credentials.onSignedOut(error)
  throw error
}
