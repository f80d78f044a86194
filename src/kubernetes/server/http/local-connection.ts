import { EventEmitter } from 'node:events'
import type { OutgoingHttpHeaders } from 'node:http'
import type { Socket } from 'node:net'
import type { HeaderValue, Reply } from '../wire/index.ts'
import type { Handler, HttpRequest } from './handler-types.ts'
import { maxBodyBytes } from './read-body.ts'

/** A request of this process to its own server. */
export type LocalRequest = {
  readonly method: string
  /** With its query. */
  readonly path: string
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string | string[]>>
  readonly body?: string | Uint8Array | undefined
}

/** Receives the response, in this order. Nothing follows `end` or `abort`. */
export type LocalSink = {
  head(status: number, headers: Record<string, string | string[]>): void
  data(chunk: string | Buffer): void
  end(): void
  /** The response is incomplete: the server is shutting down, or the reader was too slow. */
  abort(): void
}

export type LocalCall = {
  /** The reader has processed this much, counted by the `length` of its chunks. Unprocessed data pauses the server, or disconnects a watch. */
  consumed(bytes: number): void
  /** The response is no longer needed. */
  cancel(): void
}

/** The same API without a socket, TLS or HTTP; requests are authenticated by token and authorized as usual. */
export type LocalConnection = {
  call(request: LocalRequest, sink: LocalSink): LocalCall
}

/** With more unprocessed bytes than this, the server waits for the reader. */
const highWaterMarkBytes = 1024 * 1024
/** Requests that start in one iteration of the event loop, so that requests from the network are served too. */
const maxStartsPerIteration = 32

/** Connections of this process to its own server. */
export class LocalConnections {
  readonly #handler: Handler
  /** True for paths of mounts, which need node:http. */
  readonly #usesNodeHttp: (path: string) => boolean
  readonly #open = new Set<LocalReply>()
  #waiting: [LocalHttpRequest, LocalReply][] = []
  #isClosed = false

  constructor(handler: Handler, usesNodeHttp: (path: string) => boolean) {
    this.#handler = handler
    this.#usesNodeHttp = usesNodeHttp
  }

  connect(): LocalConnection {
    const { Socket } = process.getBuiltinModule('node:net')
    // Never connected: ConnectionLimiter and authentication need a socket.
    const socket = new Socket()
    return { call: (request, sink) => this.#call(request, sink, socket) }
  }

  /** Aborts the requests in progress. */
  close(): void {
    this.#isClosed = true
    for (const reply of this.#open) reply.destroy()
  }

  #call(request: LocalRequest, sink: LocalSink, socket: Socket): LocalCall {
    if (this.#usesNodeHttp(request.path)) throw new TypeError(`${request.path} is served on the TLS listener only`)
    const reply = new LocalReply(sink, request.method === 'HEAD')
    reply.once('close', () => this.#open.delete(reply))
    this.#open.add(reply)
    if (this.#isClosed) setImmediate(() => reply.destroy())
    else {
      this.#waiting.push([new LocalHttpRequest(request, socket), reply])
      if (this.#waiting.length === 1) setImmediate(() => this.#start())
    }
    return { consumed: bytes => reply.consumed(bytes), cancel: () => reply.cancel() }
  }

  #start(): void {
    const some = this.#waiting.splice(0, maxStartsPerIteration)
    if (this.#waiting.length > 0) setImmediate(() => this.#start())
    for (const [incoming, reply] of some) if (!reply.closed) this.#handler(incoming, reply)
  }
}

class LocalHttpRequest implements HttpRequest {
  readonly method: string
  readonly url: string
  readonly headers: Record<string, string | string[]>
  readonly socket: Socket
  readonly body?: Buffer

  constructor({ method, path, headers, body }: LocalRequest, socket: Socket) {
    const bytes = Buffer.from(body ?? '')
    this.method = method
    this.url = path
    this.headers = body === undefined ? headers : { ...headers, 'content-length': String(bytes.length) }
    this.socket = socket
    // A longer one is rejected because of its content-length.
    if (bytes.length <= maxBodyBytes) this.body = bytes
  }

  // Called only for a body that was not read yet.
  on(): void {}
  removeAllListeners(): void {}
  resume(): void {}
}

/** Passes a response to its sink as it is written. */
class LocalReply extends EventEmitter implements Reply {
  readonly writable = true
  readonly #sink: LocalSink
  #hasBody: boolean
  #headers: Record<string, string | string[]> = {}
  warningsOnFailure: readonly string[] | undefined = undefined
  audit: Reply['audit'] = undefined
  headersSent = false
  statusCode = 0
  writableEnded = false
  closed = false
  destroyed = false
  /** What the reader has not processed: bytes, or characters of strings. */
  writableLength = 0
  /** Callbacks for when the reader has processed enough or has disconnected. */
  #onDrained: (() => void)[] = []

  constructor(sink: LocalSink, isHead: boolean) {
    super()
    this.#sink = sink
    this.#hasBody = !isHead
  }

  setHeader(name: string, value: HeaderValue): this {
    this.#headers[name.toLowerCase()] = Array.isArray(value) ? [...value] : String(value)
    return this
  }

  getHeader(name: string): HeaderValue | undefined {
    return this.#headers[name.toLowerCase()]
  }

  appendHeader(name: string, value: string): this {
    const before = this.getHeader(name)
    return this.setHeader(name, before === undefined ? value : [...(Array.isArray(before) ? before : [String(before)]), value])
  }

  writeHead(code: number, headers: OutgoingHttpHeaders | HeaderValue[] = []): this {
    if (this.headersSent) throw new Error('the response head was sent already')
    if (Array.isArray(headers)) for (let i = 0; i < headers.length; i += 2) this.setHeader(String(headers[i]), headers[i + 1]!)
    else for (const [name, value] of Object.entries(headers)) if (value !== undefined) this.setHeader(name, value)
    this.headersSent = true
    this.statusCode = code
    if (!this.closed) this.#sink.head(code, this.#headers)
    return this
  }

  flushHeaders(): void {}

  write(data: string | Uint8Array, encoding?: BufferEncoding | (() => void)): boolean {
    if (!this.headersSent) this.writeHead(200)
    const done = typeof encoding === 'function' ? encoding : undefined
    if (this.closed || !this.#hasBody || data.length === 0) {
      if (done) setImmediate(done)
      return true
    }
    // A caller with a callback reuses the buffer, so it is copied.
    const chunk = typeof data === 'string' ? data : done ? Buffer.from(data) : Buffer.from(data.buffer, data.byteOffset, data.byteLength)
    this.writableLength += chunk.length
    this.#sink.data(chunk)
    const isFull = this.writableLength >= highWaterMarkBytes
    if (done && isFull && !this.closed) this.#onDrained.push(done)
    else if (done) setImmediate(done)
    return !isFull
  }

  end(data?: string | Uint8Array | (() => void)): this {
    if (this.writableEnded) return this
    if (data !== undefined && typeof data !== 'function') this.write(data)
    else if (!this.headersSent) this.writeHead(200)
    this.writableEnded = true
    if (!this.closed) this.#sink.end()
    this.#close()
    return this
  }

  consumed(bytes: number): void {
    const wasFull = this.writableLength >= highWaterMarkBytes
    this.writableLength -= bytes
    if (!wasFull || this.writableLength >= highWaterMarkBytes || this.closed) return
    this.#notifyDrained()
    this.emit('drain')
  }

  destroy(): this {
    if (this.closed) return this
    this.cancel()
    this.#sink.abort()
    return this
  }

  cancel(): void {
    if (this.closed) return
    this.destroyed = true
    this.#close()
  }

  #close(): void {
    if (this.closed) return
    this.closed = true
    this.#notifyDrained()
    this.emit('close')
  }

  #notifyDrained(): void {
    for (const done of this.#onDrained.splice(0)) setImmediate(done)
  }
}
