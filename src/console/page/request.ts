import { apiPath, csrfHeader, type ErrorBody, type SignInOptions } from '../protocol/index.ts'

/** An answer other than 2xx, or none (code 0). The message is the server's. */
export class RequestError extends Error {
  override readonly name = 'RequestError'
  readonly code: number
  readonly reason: string
  /** Of an answer that asks to sign in. */
  readonly signIn: SignInOptions | undefined

  constructor({ code, reason, message }: ErrorBody, signIn?: SignInOptions) {
    super(message)
    this.code = code
    this.reason = reason
    this.signIn = signIn
  }
}

type Method = 'GET' | 'POST' | 'PUT' | 'DELETE'

const csrfKey = 'oarlock-csrf'
let csrfToken = ''
let onSignedOut: (options: SignInOptions) => void = () => {}

/** Of the session: every request sends it. It is kept for this address and port only, unlike the cookie, which the browser sends to all ports of the host. */
export function setCsrfToken(token: string): void {
  csrfToken = token
  try {
    localStorage.setItem(csrfKey, token)
  } catch {
    // Without storage another tab, or this one after a reload, asks to sign in.
  }
}

/** The header of every request. Another tab may have signed in since. */
export function csrfHeaders(): Record<string, string> {
  try {
    csrfToken = localStorage.getItem(csrfKey) ?? csrfToken
  } catch {
    // As above.
  }
  return csrfToken === '' ? {} : { [csrfHeader]: csrfToken }
}

/** @param handler is called when an answer reports that there is no session. */
export function whenSignedOut(handler: (options: SignInOptions) => void): void {
  onSignedOut = handler
}

/** A request of the console's API. @param path below {@link apiPath}. @param signal aborts it. @throws {RequestError} */
export async function request<Result>(method: Method, path: string, body?: unknown, signal?: AbortSignal): Promise<Result> {
  let response: Response
  try {
    response = await fetch(`${apiPath}${path}`, {
      method,
      cache: 'no-store',
      headers: {
        ...csrfHeaders(),
        ...(body !== undefined && { 'content-type': 'application/json' }),
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
      ...(signal && { signal }),
    })
  } catch {
    throw new RequestError({ code: 0, reason: 'ConnectionFailed', message: 'the console does not answer: check that its server runs' })
  }
  if (response.status === 204) return undefined as Result
  const content: unknown = await response.json().catch(() => undefined)
  if (response.ok) return content as Result
  const error = readError(response, content)
  if (error.signIn) onSignedOut(error.signIn)
  throw error
}

function readError({ status }: Response, content: unknown): RequestError {
  const { reason, message, methods, oidc } = (content ?? {}) as Partial<ErrorBody & SignInOptions>
  return new RequestError(
    { code: status, reason: reason ?? 'InternalError', message: message ?? `the console answered with status ${status}` },
    status === 401 && methods ? { methods, ...(oidc && { oidc }) } : undefined,
  )
}
