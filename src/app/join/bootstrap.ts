import { parseServerAddress } from '../../kubernetes/util/index.ts'
import type { JoinResponse } from './join-service.ts'
import { type JoinToken, publicKeyPin } from './join-token.ts'

const timeoutMs = 15_000
const maxResponseBytes = 64 * 1_024

/** Joining, or renewing a credential, failed. */
export class JoinError extends Error {
  override readonly name = 'JoinError'
  /** The server rejected the request: retrying with the same token cannot succeed. */
  readonly isRejected: boolean

  constructor(message: string, isRejected: boolean, options?: ErrorOptions) {
    super(message, options)
    this.isRejected = isRejected
  }
}

/**
 * The certificate authority of a server, trusted only if its key matches the pin in the token. The connection that it is fetched over
 * is not authenticated, so nothing secret is sent.
 * @throws {JoinError}
 */
export async function fetchPinnedCa(server: string, { pin }: JoinToken): Promise<string> {
  const { status, text } = await send(server, { method: 'GET', path: '/join/ca', isTrusted: false })
  if (status === 401 || status === 403 || status === 404) {
    const where = 'the address of "oarlock join-service" (default port 7469) or "oarlock up" (7466)'
    throw new JoinError(`workers cannot join at ${server} (${status} for /join/ca): is it the API server alone? use ${where}`, false)
  }
  if (status !== 200) throw new JoinError(`${server} returned ${status} for /join/ca: is it an oarlock server?`, false)
  let found: string
  try {
    found = publicKeyPin(text)
  } catch (error) {
    throw new JoinError(`${server} returned no certificate for /join/ca: is it an oarlock server?`, false, {
      cause: error,
    })
  }
  if (found === pin) return text
  throw new JoinError(`${server} is not the server of the join token: its certificate authority has another key`, true)
}

/** Exchanges a join token for a credential. @throws {JoinError} */
export async function bootstrapWorker(
  server: string,
  caCertificate: string,
  token: string,
  { name, labels }: { name?: string | undefined; labels?: Readonly<Record<string, string>> | undefined } = {},
): Promise<JoinResponse> {
  return await requestCredential(server, { path: '/join', caCertificate, body: { token, name, labels } })
}

/** Exchanges a credential for a new one. @throws {JoinError} */
export async function renewCredential(server: string, caCertificate: string | undefined, credential: string): Promise<JoinResponse> {
  return await requestCredential(server, { path: '/join/renew', caCertificate, credential, body: {} })
}

type CredentialRequest = { path: string; caCertificate: string | undefined; credential?: string; body: object }

async function requestCredential(server: string, { path, caCertificate, credential, body }: CredentialRequest): Promise<JoinResponse> {
  const { status, text } = await send(server, { method: 'POST', path, isTrusted: true, caCertificate, credential, body })
  const parsed = parseObject(text)
  if (status === 200 && isJoinResponse(parsed)) return parsed
  const message = typeof parsed?.message === 'string' ? parsed.message : text.slice(0, 200)
  throw new JoinError(`${server} returned ${status}: ${message}`, status >= 400 && status < 500 && status !== 429)
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
  const { worker, pool, credential, ttlMs, labels, server, stores } = (value ?? {}) as Partial<JoinResponse>
  if (typeof labels !== 'object' || labels === null) return false
  if (![server, stores].every(each => each === undefined || typeof each?.url === 'string')) return false
  return typeof worker === 'string' && typeof pool === 'string' && typeof credential === 'string' && typeof ttlMs === 'number'
}

type BootstrapRequest = {
  method: string
  path: string
  isTrusted: boolean
  caCertificate?: string | undefined
  credential?: string
  body?: object
}

function send(
  server: string,
  { method, path, isTrusted, caCertificate, credential, body }: BootstrapRequest,
): Promise<{ status: number; text: string }> {
  const payload = body && JSON.stringify(body)
  const headers = {
    ...(payload !== undefined && { 'content-type': 'application/json', 'content-length': Buffer.byteLength(payload) }),
    ...(credential !== undefined && { authorization: `Bearer ${credential}` }),
  }
  const { baseUrl, socketPath } = parseServerAddress(server)
  const { request } = process.getBuiltinModule(baseUrl.startsWith('https:') ? 'node:https' : 'node:http')
  return new Promise((resolve, reject) => {
    const fail = (error: Error) => reject(new JoinError(`failed to reach ${server}: ${error.message}`, false, { cause: error }))
    const options = {
      socketPath,
      method,
      headers,
      ca: caCertificate,
      rejectUnauthorized: isTrusted,
      agent: false,
      signal: AbortSignal.timeout(timeoutMs),
    }
    let sent: ReturnType<typeof request>
    try {
      sent = request(new URL(path, baseUrl), options)
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
        if (text.length > maxResponseBytes) response.destroy(new Error('the response is too long'))
      })
      response.on('end', () => resolve({ status: response.statusCode ?? 0, text }))
    })
    sent.end(payload)
  })
}
