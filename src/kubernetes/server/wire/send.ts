import { promisify } from 'node:util'
import { StatusError } from '../../object/index.ts'
import type { HeaderValue, Reply } from './reply.ts'

const gzipFromBytes = 128 * 1024

/** Sends a finished body. JSON must be ASCII, which `asciiJson` ensures. */
export function send(response: Reply, code: number, contentType: string, text: string, warnings?: readonly string[]): void {
  if (response.headersSent || response.destroyed) return
  const isJson = contentType === 'application/json'
  const headers: HeaderValue[] = [
    ...(contentType ? ['Content-Type', contentType] : []),
    'Cache-Control',
    'no-cache, private',
    'Content-Length',
    isJson ? text.length : Buffer.byteLength(text),
  ]
  if (warnings?.length) {
    const texts = warningTexts(warnings)
    // Headers passed to writeHead replace those set before, such as the warning of a deprecated version.
    const before = response.getHeader('Warning')
    headers.push('Warning', before === undefined ? texts : [String(before), ...texts])
  }
  if (response.reachedVersion) response.setHeader('X-Oarlock-Version', String(response.reachedVersion()))
  response.writeHead(code, headers)
  response.end(text, isJson ? 'latin1' : 'utf8')
}

/** Like {@link send}, compressed when the client accepts gzip and the body is large. */
export async function sendLarge(response: Reply, contentType: string, text: string, acceptEncoding: string | undefined): Promise<void> {
  if (text.length < gzipFromBytes || !takesGzip(acceptEncoding)) {
    send(response, 200, contentType, text)
    return
  }
  const bytes = Buffer.from(text, contentType === 'application/json' ? 'latin1' : 'utf8')
  const body = await whilePending(response, bytes.length, compress(bytes))
  if (response.destroyed) return
  response.writeHead(200, {
    'Content-Type': contentType,
    'Cache-Control': 'no-cache, private',
    'Content-Encoding': 'gzip',
    'Content-Length': body.length,
    Vary: 'Accept-Encoding',
  })
  response.end(body)
}

// node:zlib is loaded on first use.
function compress(bytes: Buffer): Promise<Buffer> {
  return promisify(process.getBuiltinModule('node:zlib').gzip)(bytes, { level: 1 })
}

/** A finished response with its own headers. An empty content type means no Content-Type header, for an empty body. */
export type Sent = {
  readonly code: number
  readonly contentType: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string | Buffer
  /** Given by a document that is sent again: its compressed body is cached as long as this object exists. */
  readonly cacheKey?: object
}

const compressed = new WeakMap<object, Buffer | Promise<Buffer>>()

/** Sends a document that is not an object and may be large: discovery, OpenAPI, metrics. Compressed when the client accepts gzip and it is large. */
export async function sendDocument(response: Reply, document: Sent, acceptEncoding: string): Promise<void> {
  const { code, contentType, headers, body } = document
  const isGzip = body.length >= gzipFromBytes && takesGzip(acceptEncoding)
  const gzip = isGzip ? compressedBody(document) : bytesOf(body)
  // Without a wait if possible: until it is written, a connection reads further requests.
  const sent = gzip instanceof Promise ? await whilePending(response, body.length, gzip) : gzip
  if (response.headersSent || response.destroyed) return
  response.writeHead(code, {
    ...(contentType && { 'Content-Type': contentType }),
    'Cache-Control': 'no-cache, private',
    ...(isGzip && { 'Content-Encoding': 'gzip' }),
    ...(code !== 304 && { 'Content-Length': sent.length }),
    ...headers,
    ...(isGzip &&
      !headers.Vary?.includes('Accept-Encoding') && { Vary: headers.Vary ? `${headers.Vary}, Accept-Encoding` : 'Accept-Encoding' }),
  })
  response.end(sent)
}

const bytesOf = (body: string | Buffer): Buffer => (typeof body === 'string' ? Buffer.from(body) : body)

function compressedBody({ cacheKey, body }: Sent): Buffer | Promise<Buffer> {
  const known = cacheKey && compressed.get(cacheKey)
  if (known) return known
  const pending = compress(bytesOf(body))
  if (cacheKey) {
    compressed.set(cacheKey, pending)
    pending.then(
      bytes => compressed.set(cacheKey, bytes),
      () => compressed.delete(cacheKey),
    )
  }
  return pending
}

/** Counts `bytes` as unsent meanwhile. */
async function whilePending<T>(response: Reply, bytes: number, work: Promise<T>): Promise<T> {
  response.pendingBytes = bytes
  try {
    return await work
  } finally {
    response.pendingBytes = 0
  }
}

export function takesGzip(acceptEncoding: string | undefined): boolean {
  return acceptEncoding?.includes('gzip') ?? false
}

/** The 413 for V8's errors about an argument list, a string or an array that is too long. */
function tooLarge(error: unknown): StatusError | undefined {
  if (!(error instanceof RangeError) || !/call stack|string length|array length/i.test(error.message)) return undefined
  return new StatusError('RequestEntityTooLarge', 'the request is too large to be processed', { cause: error })
}

/** Sends the Status of `error`. Any error that is not a StatusError is a bug: its details go to the log only. */
export function sendError(response: Reply, error: unknown, onInternal: (error: unknown) => void): void {
  let status = error instanceof StatusError ? error : undefined
  if (!status) {
    onInternal(error)
    status = tooLarge(error) ?? new StatusError('InternalError', 'Internal error occurred: see the log of the server', { cause: error })
  }
  if (response.headersSent) {
    response.destroy()
    return
  }
  const warnings = response.warningsOnFailure ?? []
  if (warnings.length > 0) {
    const before = response.getHeader('Warning')
    const texts = warningTexts(warnings)
    response.setHeader('Warning', before === undefined ? texts : [String(before), ...texts])
  }
  const retryAfter = status.details?.retryAfterSeconds
  if (retryAfter !== undefined) response.setHeader('Retry-After', retryAfter)
  if (response.audit && status.code === 403) response.audit.denial = status.message
  const text = JSON.stringify(status.toStatus())
  const body = Buffer.from(text)
  response.writeHead(status.code, {
    'Content-Type': 'application/json',
    'Cache-Control': 'no-cache, private',
    'Content-Length': body.length,
  })
  response.end(body)
}

/** Total length of the warnings of a response, as in Kubernetes, and within the header limit of node:http2 clients. */
const maxWarningsLength = 4_096
const maxWarnings = 64

function warningTexts(warnings: readonly string[]): string[] {
  const texts: string[] = []
  let length = 0
  for (const warning of warnings) {
    const text = `299 - "${quotable(warning)}"`
    length += text.length
    if (length > maxWarningsLength || texts.length === maxWarnings) break
    texts.push(text)
  }
  return texts
}

// A header value is one line of ASCII in quotes.
function quotable(text: string): string {
  return text
    .slice(0, 1_000)
    .replace(/[^ -~]/g, '?')
    .replace(/["\\]/g, '\\$&')
}
