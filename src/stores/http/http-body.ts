import type { IncomingMessage, ServerResponse } from 'node:http'

/** The authenticated user of a request. */
export type HttpUser = {
  readonly name: string
  readonly groups: readonly string[]
  readonly uid?: string | undefined
  readonly extra?: Readonly<Record<string, readonly string[]>> | undefined
}

/** An error response with a status, a code and additional fields. */
export class HttpError extends Error {
  override readonly name = 'HttpError'
  readonly status: number
  readonly code: string
  readonly details: Record<string, unknown>

  constructor(status: number, code: string, message: string, details: Record<string, unknown> = {}) {
    super(message)
    this.status = status
    this.code = code
    this.details = details
  }
}

/** The bytes of one request. */
export type BodyReservation = {
  /** False when a limit is reached. */
  tryAcquire(bytes: number): boolean
  /** The bytes are no longer needed. */
  release(): void
}

/** Limits the bytes of request bodies that are received or stored, over all requests and of each client (invariant 10). */
export class BodyBudget {
  readonly #maxBytes: number
  readonly #maxBytesPerClient: number
  readonly #usedBytes = new Map<string, number>()
  #allUsedBytes = 0

  constructor(maxBytes: number, maxBytesPerClient = maxBytes) {
    this.#maxBytes = maxBytes
    this.#maxBytesPerClient = maxBytesPerClient
  }

  /** One request is always accepted, and one of each client while not all bytes are in use. */
  reserve(client: string): BodyReservation {
    let acquired = 0
    return {
      tryAcquire: bytes => {
        const own = this.#usedBytes.get(client) ?? 0
        if (this.#allUsedBytes > 0 && this.#allUsedBytes + bytes > this.#maxBytes) return false
        if (own > 0 && own + bytes > this.#maxBytesPerClient) return false
        acquired += bytes
        this.#allUsedBytes += bytes
        this.#usedBytes.set(client, own + bytes)
        return true
      },
      release: () => {
        const rest = (this.#usedBytes.get(client) ?? 0) - acquired
        if (rest > 0) this.#usedBytes.set(client, rest)
        else this.#usedBytes.delete(client)
        this.#allUsedBytes -= acquired
        acquired = 0
      },
    }
  }
}

/**
 * Reads a request's body.
 * @throws {HttpError} 413 above `maxBytes` (declared or received), 408 after `idleMs` without data, 400 when it is incomplete, 503 when `budget` is exhausted; the caller releases it.
 */
export async function readBody(
  req: IncomingMessage,
  options: { maxBytes: number; idleMs: number; budget?: BodyReservation },
): Promise<Buffer> {
  const { maxBytes, idleMs, budget } = options
  const tooLarge = (bytes: number | string) =>
    new HttpError(413, 'TooLarge', `the body has ${bytes} bytes, at most ${maxBytes} are allowed`)
  const declared = Number(req.headers['content-length'] ?? 0)
  if (declared > maxBytes) throw tooLarge(declared)
  const chunks: Buffer[] = []
  let size = 0
  return await new Promise<Buffer>((resolve, reject) => {
    const idle = setTimeout(() => reject(new HttpError(408, 'Timeout', `no data of the body was received for ${idleMs} ms`)), idleMs)
    const settle = (end: () => void) => () => {
      clearTimeout(idle)
      req.off('data', onData)
      end()
    }
    const onData = (chunk: Buffer) => {
      idle.refresh()
      size += chunk.byteLength
      if (size > maxBytes) return settle(() => reject(tooLarge(`more than ${maxBytes}`)))()
      if (budget?.tryAcquire(chunk.byteLength) === false) {
        return settle(() => reject(new HttpError(503, 'Overloaded', 'too many requests are being received; retry later')))()
      }
      chunks.push(chunk)
    }
    req.on('data', onData)
    req.once(
      'end',
      settle(() => resolve(Buffer.concat(chunks, size))),
    )
    req.once(
      'error',
      settle(() => reject(new HttpError(400, 'Incomplete', 'the body is incomplete'))),
    )
    req.once(
      'close',
      settle(() => reject(new HttpError(400, 'Incomplete', 'the body is incomplete'))),
    )
  })
}

/** Sends a response; a client that does not read it within `timeoutMs` is disconnected. */
export function send(
  res: ServerResponse,
  status: number,
  type: string,
  body: Uint8Array | string,
  headers: Record<string, string | number> = {},
  timeoutMs = 60_000,
): void {
  if (res.headersSent || res.destroyed) return
  const bytes = typeof body === 'string' ? Buffer.from(body) : body
  const isEmpty = status === 204
  // The rest of a rejected body is not read, so the connection cannot be reused.
  const connection = res.req.complete ? {} : { connection: 'close' }
  res.writeHead(status, {
    ...(isEmpty ? {} : { 'content-type': type, 'content-length': bytes.byteLength }),
    'cache-control': 'no-store',
    ...connection,
    ...headers,
  })
  const timeout = setTimeout(() => res.destroy(), timeoutMs)
  res.once('close', () => clearTimeout(timeout))
  res.end(isEmpty || res.req.method === 'HEAD' ? undefined : bytes)
}

export function sendJson(res: ServerResponse, status: number, value: unknown, headers?: Record<string, string | number>): void {
  send(res, status, 'application/json', `${JSON.stringify(value)}\n`, headers)
}

/** Sends `{error:{code,message}}` with the additional fields of the error. */
export function sendError(res: ServerResponse, error: HttpError, headers: Record<string, string | number> = {}): void {
  const allHeaders = error.status === 503 || error.status === 429 ? { 'retry-after': 1, ...headers } : headers
  sendJson(res, error.status, { error: { code: error.code, message: error.message }, ...error.details }, allHeaders)
}
