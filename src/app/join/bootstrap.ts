import { request } from 'node:https'
import type { JoinResponse } from './join-service.ts'
import { type JoinToken, publicKeyPin } from './join-token.ts'

const timeoutMs = 15_000
const maxAnswerBytes = 64 * 1_024

/** Why a server did not let a worker in. */
export class JoinError extends Error {
  override readonly name = 'JoinError'
  /** The server said no: trying again with the same token is of no use. */
  readonly isRefused: boolean

  constructor(message: string, isRefused: boolean, options?: ErrorOptions) {
    super(message, options)
    this.isRefused = isRefused
  }
}

/**
 * The certificate authority of a server, believed only if its key is the one that the token names: the connection it comes over
 * could be anybody's, and nothing secret is sent over it.
 */
export async function fetchPinnedCa(server: string, { pin }: JoinToken): Promise<string> {
  const { status, text } = await send(server, { method: 'GET', path: '/join/ca', isTrusted: false })
  if (status !== 200)
    throw new JoinError(`${server} answered ${status} when it was asked for its certificate authority: is it an oarlock server?`, false)
  let found: string
  try {
    found = publicKeyPin(text)
  } catch (error) {
    throw new JoinError(`${server} gave no certificate when it was asked for its certificate authority: is it an oarlock server?`, false, {
      cause: error,
    })
  }
  if (found === pin) return text
  throw new JoinError(`${server} is not the server that the token is for: the key of its certificate authority is another`, true)
}

/** @throws {JoinError} */
export async function bootstrapWorker(
  server: string,
  caCertificate: string,
  token: string,
  { name, labels }: { name?: string | undefined; labels?: Readonly<Record<string, string>> | undefined } = {},
): Promise<JoinResponse> {
  return await requestCredential(server, { path: '/join', caCertificate, body: { token, name, labels } })
}

/** @throws {JoinError} */
export async function renewCredential(server: string, caCertificate: string, credential: string): Promise<JoinResponse> {
  return await requestCredential(server, { path: '/join/renew', caCertificate, credential, body: {} })
}

type CredentialRequest = { path: string; caCertificate: string; credential?: string; body: object }

async function requestCredential(server: string, { path, caCertificate, credential, body }: CredentialRequest): Promise<JoinResponse> {
  const { status, text } = await send(server, { method: 'POST', path, isTrusted: true, caCertificate, credential, body })
  const parsed = parseObject(text)
  if (status === 200 && isJoinResponse(parsed)) return parsed
  const message = typeof parsed?.message === 'string' ? parsed.message : text.slice(0, 200)
  throw new JoinError(`${server} answered ${status}: ${message}`, status >= 400 && status < 500 && status !== 429)
}

function parseObject(text: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : undefined
  } catch {
    return undefined
  }
}

function isJoinResponse(value: unknown): value is JoinResponse {
  const { worker, pool, credential, ttlMs, labels } = (value ?? {}) as Partial<JoinResponse>
  if (typeof labels !== 'object' || labels === null) return false
  return typeof worker === 'string' && typeof pool === 'string' && typeof credential === 'string' && typeof ttlMs === 'number'
}

type HttpRequest = { method: string; path: string; isTrusted: boolean; caCertificate?: string; credential?: string; body?: object }

function send(
  server: string,
  { method, path, isTrusted, caCertificate, credential, body }: HttpRequest,
): Promise<{ status: number; text: string }> {
  const payload = body && JSON.stringify(body)
  const headers = {
    ...(payload !== undefined && { 'content-type': 'application/json', 'content-length': Buffer.byteLength(payload) }),
    ...(credential !== undefined && { authorization: `Bearer ${credential}` }),
  }
  return new Promise((resolve, reject) => {
    const fail = (error: Error) => reject(new JoinError(`${server} cannot be reached: ${error.message}`, false, { cause: error }))
    const options = {
      method,
      headers,
      ca: caCertificate,
      rejectUnauthorized: isTrusted,
      agent: false,
      signal: AbortSignal.timeout(timeoutMs),
    }
    let sent: ReturnType<typeof request>
    try {
      sent = request(new URL(path, server), options)
    } catch (error) {
      return fail(error as Error)
    }
    sent.on('error', fail)
    sent.on('response', response => {
      let text = ''
      response.setEncoding('utf8')
      response.on('error', fail)
      response.on('data', (chunk: string) => {
        text += chunk
        if (text.length > maxAnswerBytes) response.destroy(new Error('the answer is too long'))
      })
      response.on('end', () => resolve({ status: response.statusCode ?? 0, text }))
    })
    sent.end(payload)
  })
}
