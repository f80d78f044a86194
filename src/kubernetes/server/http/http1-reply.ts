import { EventEmitter } from 'node:events'
import type { OutgoingHttpHeaders } from 'node:http'
import type { HeaderValue, Reply } from '../wire/index.ts'

// An import of node:http evaluates everything that it exports, such as WebSocket, which loads undici and node:http2: 13 MB.
const { STATUS_CODES } = process.getBuiltinModule('node:http')

/** What a reply needs from its connection. */
export type ReplyConnection = {
  /** Sends bytes of `reply`, in order; false when it should wait for `drain`. */
  send(reply: Http1Reply, data: string | Buffer, encoding: BufferEncoding, done?: () => void): boolean
  /** `reply` has ended. */
  finish(reply: Http1Reply): void
  /** True when `reply` is the last one on this connection. */
  isLast(reply: Http1Reply): boolean
  /** Unsent bytes. */
  bufferedBytes(): number
  destroy(): void
}

const forbiddenInValue = /[^\t\x20-\x7e\x80-\xff]/

/** One response of {@link Http1Connection}. */
export class Http1Reply extends EventEmitter implements Reply {
  readonly #connection: ReplyConnection
  #hasBody: boolean
  #headers: Map<string, [name: string, value: HeaderValue]> | undefined
  /** The head, until it is sent with the first bytes of the body. */
  #headText = ''
  #isChunked = false
  /** Data that waits until the responses before this one are sent; undefined when this one is being sent. */
  #deferred: { data: string | Buffer; encoding: BufferEncoding; done: (() => void) | undefined }[] | undefined
  #deferredBytes = 0
  pendingBytes = 0
  warningsOnFailure: readonly string[] | undefined = undefined
  audit: Reply['audit'] = undefined
  reachedVersion: Reply['reachedVersion'] = undefined
  headersSent = false
  statusCode = 0
  writableEnded = false
  closed = false
  destroyed = false
  readonly writable = true

  /** @param isHead for a HEAD request, whose response has no body. */
  constructor(carrier: ReplyConnection, isHead: boolean) {
    super()
    this.#connection = carrier
    this.#hasBody = !isHead
  }

  /** Bytes that wait for the responses before this one, or are being prepared. */
  get deferredBytes(): number {
    return this.#deferredBytes + this.pendingBytes
  }

  get writableLength(): number {
    return this.#deferredBytes + this.#connection.bufferedBytes()
  }

  setHeader(name: string, value: HeaderValue): this {
    if (this.headersSent) throw new Error('the response head was sent already')
    this.#headers ??= new Map()
    this.#headers.set(name.toLowerCase(), [name, value])
    return this
  }

  getHeader(name: string): HeaderValue | undefined {
    return this.#headers?.get(name.toLowerCase())?.[1]
  }

  appendHeader(name: string, value: string): this {
    const before = this.getHeader(name)
    return this.setHeader(name, before === undefined ? value : typeof before === 'object' ? [...before, value] : [String(before), value])
  }

  writeHead(code: number, headers: OutgoingHttpHeaders | HeaderValue[] = []): this {
    if (this.headersSent) throw new Error('the response head was sent already')
    this.statusCode = code
    let text = `HTTP/1.1 ${code} ${STATUS_CODES[code] ?? 'Unknown'}\r\n`
    const flat = Array.isArray(headers)
      ? headers
      : Object.entries(headers).flatMap(([name, value]) => (value === undefined ? [] : [name, value]))
    let isSized = false
    for (let i = 0; i < flat.length; i += 2) {
      const name = flat[i] as string
      text += fieldText(name, flat[i + 1]!)
      if (name === 'Content-Length') isSized = true
      this.#headers?.delete(name.toLowerCase())
    }
    for (const [name, value] of this.#headers?.values() ?? []) text += fieldText(name, value)
    this.#headers = undefined
    // RFC 9112, section 6.3: these have no body.
    if (code === 204 || code === 304) this.#hasBody = false
    this.#isChunked = !isSized && this.#hasBody
    if (this.#isChunked) text += 'Transfer-Encoding: chunked\r\n'
    if (this.#connection.isLast(this)) text += 'Connection: close\r\n'
    this.#headText = `${text}${dateField()}\r\n`
    this.headersSent = true
    return this
  }

  flushHeaders(): void {
    const head = this.#headText
    this.#headText = ''
    if (head) this.#send(head, 'latin1')
  }

  write(data: string | Uint8Array, encoding?: BufferEncoding | (() => void)): boolean {
    const length = typeof data === 'string' ? Buffer.byteLength(data, asEncoding(encoding)) : data.length
    if (length === 0) return true
    return this.#body(data, asEncoding(encoding), length, false, typeof encoding === 'function' ? encoding : undefined)
  }

  writeFramed(framed: Buffer, done?: () => void): boolean {
    if (!this.#isChunked || this.writableEnded) return false
    this.flushHeaders()
    this.#send(framed, 'latin1', done)
    return true
  }

  end(data?: string | Uint8Array | (() => void), encoding?: BufferEncoding | (() => void)): this {
    if (this.writableEnded) return this
    const body = typeof data === 'function' || data === undefined ? '' : data
    const as = asEncoding(encoding)
    if (!this.headersSent) this.writeHead(200, ['Content-Length', typeof body === 'string' ? Buffer.byteLength(body, as) : body.length])
    this.#body(body, as, typeof body === 'string' && this.#isChunked ? Buffer.byteLength(body, as) : body.length, true)
    this.writableEnded = true
    if (this.#deferred === undefined) this.#connection.finish(this)
    return this
  }

  destroy(): this {
    this.#connection.destroy()
    return this
  }

  /** Called when the responses before this one are sent: it writes to the connection from now on. True when it has already ended. */
  activate(): boolean {
    const held = this.#deferred
    this.#deferred = undefined
    this.#deferredBytes = 0
    for (const { data, encoding, done } of held ?? []) this.#connection.send(this, data, encoding, done)
    if (!this.writableEnded && held && held.length > 0) this.emit('drain')
    return this.writableEnded
  }

  /** Holds its data back until {@link activate}: other responses are sent first. */
  defer(): void {
    this.#deferred = []
  }

  /** The response has ended, or its client has disconnected (`isAborted`). */
  close(isAborted: boolean): void {
    if (this.closed) return
    this.closed = true
    this.destroyed = isAborted
    this.emit('close')
  }

  #body(data: string | Uint8Array, encoding: BufferEncoding, length: number, isEnd: boolean, done?: () => void): boolean {
    if (!this.headersSent) this.writeHead(200, [])
    const head = this.#headText
    this.#headText = ''
    if (!this.#hasBody) return head ? this.#send(head, 'latin1') : true
    const open = this.#isChunked && length > 0 ? `${head}${length.toString(16)}\r\n` : head
    const close = !this.#isChunked ? '' : length === 0 ? (isEnd ? '0\r\n\r\n' : '') : isEnd ? '\r\n0\r\n\r\n' : '\r\n'
    // The head is ASCII and can be sent in the encoding of the body.
    if (typeof data === 'string') return this.#send(`${open}${data}${close}`, encoding)
    if (open) this.#send(open, 'latin1')
    const isReady = this.#send(Buffer.from(data.buffer, data.byteOffset, data.byteLength), 'latin1', done)
    if (close) this.#send(close, 'latin1')
    return isReady
  }

  #send(data: string | Buffer, encoding: BufferEncoding, done?: () => void): boolean {
    if (this.closed) return true
    if (this.#deferred === undefined) return this.#connection.send(this, data, encoding, done)
    this.#deferred.push({ data, encoding, done })
    this.#deferredBytes += data.length
    return false
  }
}

const asEncoding = (encoding: unknown): BufferEncoding => (encoding === 'latin1' ? 'latin1' : 'utf8')

function fieldText(name: string, value: HeaderValue): string {
  if (typeof value === 'object') return value.map(one => fieldText(name, one)).join('')
  if (typeof value === 'string' && forbiddenInValue.test(value)) throw new TypeError(`the header ${name} must be one line of latin1`)
  return `${name}: ${value}\r\n`
}

let dateText = ''
let dateSecond = 0

function dateField(): string {
  const second = Math.floor(Date.now() / 1_000)
  if (second !== dateSecond) {
    dateSecond = second
    dateText = `Date: ${new Date(second * 1_000).toUTCString()}\r\n`
  }
  return dateText
}
