import type { IncomingMessage, ServerResponse } from 'node:http'

/** A client's fault, or ours with a reason, ready to be answered. */
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

/** Bytes of request bodies that are being received now, over all requests, and their bound (invariant 10). */
export class BodyBudget {
  readonly #maxBytes: number
  #usedBytes = 0

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes
  }

  tryAcquire(bytes: number): boolean {
    if (this.#usedBytes > 0 && this.#usedBytes + bytes > this.#maxBytes) return false
    this.#usedBytes += bytes
    return true
  }

  release(bytes: number): void {
    this.#usedBytes -= bytes
  }
}

/**
 * Reads a request's body.
 * @throws {HttpError} 413 over `maxBytes` (announced or sent), 408 when nothing came for `idleMs`, 400 when it ended early, 503 when `budget` is used up.
 */
export async function readBody(req: IncomingMessage, options: { maxBytes: number; idleMs: number; budget?: BodyBudget }): Promise<Buffer> {
  const { maxBytes, idleMs, budget } = options
  const tooLarge = (bytes: number | string) =>
    new HttpError(413, 'TooLarge', `the body has ${bytes} bytes, at most ${maxBytes} are allowed`)
  const announced = Number(req.headers['content-length'] ?? 0)
  if (announced > maxBytes) throw tooLarge(announced)
  const chunks: Buffer[] = []
  let size = 0
  let taken = 0
  try {
    return await new Promise<Buffer>((resolve, reject) => {
      const idle = setTimeout(() => reject(new HttpError(408, 'Timeout', `no byte of the body came for ${idleMs} ms`)), idleMs)
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
          return settle(() => reject(new HttpError(503, 'Overloaded', 'too many bytes are being received at once; try again')))()
        }
        taken += chunk.byteLength
        chunks.push(chunk)
      }
      req.on('data', onData)
      req.once(
        'end',
        settle(() => resolve(Buffer.concat(chunks, size))),
      )
      req.once(
        'error',
        settle(() => reject(new HttpError(400, 'Incomplete', 'the body ended early'))),
      )
      req.once(
        'close',
        settle(() => reject(new HttpError(400, 'Incomplete', 'the body ended early'))),
      )
    })
  } finally {
    budget?.release(taken)
  }
}

/** Answers with bytes; a client that does not read them within `timeoutMs` is cut off. */
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
  // What is left of a refused body is not read: the connection cannot be used again.
  const rest = res.req.complete ? {} : { connection: 'close' }
  res.writeHead(status, {
    ...(isEmpty ? {} : { 'content-type': type, 'content-length': bytes.byteLength }),
    'cache-control': 'no-store',
    ...rest,
    ...headers,
  })
  const late = setTimeout(() => res.destroy(), timeoutMs)
  res.once('close', () => clearTimeout(late))
  res.end(isEmpty || res.req.method === 'HEAD' ? undefined : bytes)
}

export function sendJson(res: ServerResponse, status: number, value: unknown, headers?: Record<string, string | number>): void {
  send(res, status, 'application/json', `${JSON.stringify(value)}\n`, headers)
}

/** `{error:{code,message}}`, with what else the error carries beside it. */
export function sendError(res: ServerResponse, error: HttpError, headers: Record<string, string | number> = {}): void {
  const all = error.status === 503 ? { 'retry-after': 1, ...headers } : headers
  sendJson(res, error.status, { error: { code: error.code, message: error.message }, ...error.details }, all)
}
