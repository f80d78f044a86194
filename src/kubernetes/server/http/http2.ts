import { EventEmitter } from 'node:events'
import type { Http2Server, Http2Session, IncomingHttpHeaders, OutgoingHttpHeaders, ServerHttp2Stream } from 'node:http2'
import type { Socket } from 'node:net'
import type { TLSSocket } from 'node:tls'
import type { HeaderValue, Reply } from '../wire/index.ts'
import type { Handler, HttpRequest } from './handler-types.ts'
import type { SendBufferLimiter } from './send-buffer-limiter.ts'

export type Http2Options = {
  handler: Handler
  /** True for URLs that `onCompatRequest` serves. */
  usesNodeHttp: (url: string) => boolean
  /** Serves a request with the API that node:http2 has in common with node:http. */
  onCompatRequest: (request: unknown, response: unknown) => void
  maxHeaderBytes: number
  requestTimeoutMs: number
  idleTimeoutMs: number
  sendBuffers: SendBufferLimiter
}

/** Concurrent requests and watches of one connection, as in Go's servers; Go's transport opens another connection for more. */
const maxConcurrentStreams = 250

/** HTTP/2 (RFC 9113) for clients that negotiate it in the TLS handshake: client-go has many watches on one connection. */
export type Http2 = {
  accept(socket: TLSSocket): void
  /** Sends GOAWAY; connections end with their last response. */
  stop(): void
  destroy(): void
}

/** Loads node:http2, so call this for the first client that uses it. */
export async function openHttp2(options: Http2Options): Promise<Http2> {
  const { createServer, constants } = await import('node:http2')
  const { handler, usesNodeHttp, onCompatRequest, maxHeaderBytes, requestTimeoutMs, idleTimeoutMs, sendBuffers } = options
  const server: Http2Server = createServer({ settings: { maxConcurrentStreams, maxHeaderListSize: maxHeaderBytes } })
  // A separate server provides the compatibility API for mounted routes, because it allocates an object for every stream.
  const compatible = createServer(onCompatRequest as Parameters<typeof createServer>[0] & (() => void))
  const sessions = new Map<Http2Session, TLSSocket>()
  let accepted: TLSSocket | undefined
  server.on('session', session => {
    let open = 0
    sessions.set(session, accepted!)
    session.on('error', () => {})
    session.on('close', () => sessions.delete(session))
    session.on('stream', stream => {
      open++
      stream.on('close', () => open--)
    })
    session.setTimeout(idleTimeoutMs, () => {
      // Watches may be idle for long.
      if (open === 0) session.close()
    })
  })
  server.on('stream', (stream: ServerHttp2Stream, headers: IncomingHttpHeaders, flags: number, rawHeaders: string[]) => {
    stream.on('error', () => {})
    const { session } = stream
    const socket = session && sessions.get(session)
    // Closed already.
    if (!socket || stream.destroyed) return
    sendBuffers.add(stream)
    stream.once('close', () => sendBuffers.delete(stream))
    const url = String(headers[':path'] ?? '/')
    if (usesNodeHttp(url)) {
      compatible.emit('stream', stream, headers, flags, rawHeaders)
      return
    }
    const isEnded = (flags & constants.NGHTTP2_FLAG_END_STREAM) !== 0
    // The timeout is for receiving the body; the response of a watch has no time limit.
    if (!isEnded) {
      const timer = setTimeout(() => stream.close(constants.NGHTTP2_CANCEL), requestTimeoutMs)
      stream.once('end', () => clearTimeout(timer))
      stream.once('close', () => clearTimeout(timer))
    }
    const request = new Http2Request(stream, headers, url, socket)
    handler(request, new Http2Reply(stream, request.method === 'HEAD'))
  })
  return {
    accept(socket) {
      // The session is created synchronously.
      accepted = socket
      server.emit('connection', socket)
      accepted = undefined
    },
    stop() {
      for (const session of sessions.keys()) session.close()
    },
    destroy() {
      for (const session of sessions.keys()) session.destroy()
    },
  }
}

class Http2Request implements HttpRequest {
  readonly #stream: ServerHttp2Stream
  readonly method: string
  readonly url: string
  readonly headers: IncomingHttpHeaders
  readonly socket: Socket

  /** @param socket the connection itself; the session has only a proxy of it. */
  constructor(stream: ServerHttp2Stream, headers: IncomingHttpHeaders, url: string, socket: Socket) {
    this.#stream = stream
    this.socket = socket
    this.headers = headers
    this.method = String(headers[':method'] ?? 'GET')
    this.url = url
  }

  on(event: string, listener: (chunk: Buffer) => void): this {
    this.#stream.on(event, listener)
    return this
  }

  removeAllListeners(event: string): this {
    this.#stream.removeAllListeners(event)
    return this
  }

  resume(): this {
    this.#stream.resume()
    return this
  }
}

class Http2Reply extends EventEmitter implements Reply {
  readonly #stream: ServerHttp2Stream
  readonly #isHead: boolean
  #headers: OutgoingHttpHeaders = {}
  readonly writable = true

  constructor(stream: ServerHttp2Stream, isHead: boolean) {
    super()
    this.#stream = stream
    this.#isHead = isHead
    stream.on('close', () => this.emit('close'))
    stream.on('drain', () => this.emit('drain'))
  }

  statusCode = 0
  pendingBytes = 0

  get headersSent(): boolean {
    return this.#stream.headersSent
  }

  get destroyed(): boolean {
    return this.#stream.destroyed
  }

  get closed(): boolean {
    return this.#stream.closed || this.#stream.destroyed
  }

  get writableEnded(): boolean {
    return this.#stream.writableEnded
  }

  get writableLength(): number {
    return this.#stream.writableLength + this.pendingBytes
  }

  setHeader(name: string, value: HeaderValue): this {
    this.#headers[name.toLowerCase()] = value as OutgoingHttpHeaders[string]
    return this
  }

  getHeader(name: string): HeaderValue | undefined {
    return this.#headers[name.toLowerCase()]
  }

  appendHeader(name: string, value: string): this {
    const before = this.getHeader(name)
    return this.setHeader(name, before === undefined ? value : typeof before === 'object' ? [...before, value] : [String(before), value])
  }

  writeHead(code: number, headers: OutgoingHttpHeaders | HeaderValue[] = []): this {
    if (this.closed) return this
    const flat = Array.isArray(headers)
      ? headers
      : Object.entries(headers).flatMap(([name, value]) => (value === undefined ? [] : [name, value]))
    for (let i = 0; i < flat.length; i += 2) this.setHeader(String(flat[i]), flat[i + 1]!)
    this.statusCode = code
    this.#stream.respond({ ':status': code, ...this.#headers })
    return this
  }

  flushHeaders(): void {}

  write(data: string | Uint8Array, encoding?: BufferEncoding | (() => void)): boolean {
    if (this.closed) return true
    return typeof encoding === 'string' ? this.#stream.write(data, encoding) : this.#stream.write(data, encoding)
  }

  end(data?: string | Uint8Array | (() => void), encoding?: BufferEncoding | (() => void)): this {
    if (this.closed) return this
    if (!this.headersSent) this.writeHead(200, [])
    if (data === undefined || typeof data === 'function' || this.#isHead) this.#stream.end()
    else if (typeof encoding === 'string') this.#stream.end(data, encoding)
    else this.#stream.end(data)
    return this
  }

  destroy(): this {
    this.#stream.destroy()
    return this
  }
}
