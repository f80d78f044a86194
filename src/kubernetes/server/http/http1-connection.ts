import type { Socket } from 'node:net'
import type { Handler, HttpRequest } from './handler-types.ts'
import { Http1Reply, type ReplyConnection } from './http1-reply.ts'
import { type Head, maxHeadBytes, readHead } from './read-head.ts'

export type Http1Options = {
  handler: Handler
  /** True for URLs that node:http serves. */
  usesNodeHttp: (url: string) => boolean
  /** Takes over a connection with an unusual request, from the first byte that was not consumed here. */
  onDelegate: (socket: Socket, rest: Buffer) => void
  onClose: (connection: Http1Connection) => void
}

const headEnd = Buffer.from('\r\n\r\n')
const emptyBuffer = Buffer.alloc(0)
/** Concurrent requests of one connection; the next one is read when the first of them has its response. */
const maxPipelined = 128
/**
 * A body up to this length is read before the request is authenticated, so an anonymous client can make the server buffer that much.
 * Requests with a longer body go to node:http, which leaves the body on the wire until the request starts.
 */
const maxBufferedBodyBytes = 64 * 1024
/** With more unsent bytes than this, the next request of the client is not read. */
const maxUnsentBytes = 1024 * 1024
/** Responses up to this length are sent together at the end of the tick. */
const maxBatchedLength = 64 * 1024

/**
 * HTTP/1.1 in the simple form that API clients use: one buffer in, one string out, pipelining, and no allocation that a request does not
 * need. Requests are parsed by {@link readHead}; the first request that is not simple passes the connection to node:http permanently.
 * Responses that are ready in one tick are sent in one write: one TLS record, one system call.
 */
export class Http1Connection implements ReplyConnection {
  readonly #socket: Socket
  readonly #options: Http1Options
  #unread: Buffer = emptyBuffer
  /** Chunks after `#unread`; they are joined when there are `#neededBytes`. */
  #chunks: Buffer[] | undefined
  #unreadBytes = 0
  #neededBytes = 0
  #last: Head | undefined
  readonly #replies: Http1Reply[] = []
  #out = ''
  #isFlushScheduled = false
  #isPaused = false
  #isReading = false
  #isDelegating = false
  #isStopping = false
  #isClosed = false
  #hasAnswered = false
  #sweepsWithoutInput = 0

  constructor(socket: Socket, options: Http1Options) {
    this.#socket = socket
    this.#options = options
    socket.on('data', this.#onData)
    socket.on('drain', this.#onDrain)
    socket.on('end', this.#onEnd)
    socket.on('close', this.#onClose)
    socket.on('error', this.#onError)
  }

  /** Finishes requests in progress; reads no further ones. */
  stop(): void {
    this.#isStopping = true
    if (this.#replies.length === 0) this.#end()
  }

  /**
   * Called at a fixed interval: closes the connection after `idleSweeps` calls without a request, or `slowSweeps` in the middle of one.
   * Cheaper than a timer per connection.
   */
  sweep(idleSweeps: number, slowSweeps: number): void {
    if (this.#replies.length > 0) return
    this.#sweepsWithoutInput++
    if (this.#unreadBytes > 0) {
      if (this.#sweepsWithoutInput > slowSweeps) this.#reject('408 Request Timeout')
    } else if (this.#sweepsWithoutInput > (this.#hasAnswered ? idleSweeps : slowSweeps)) this.#end()
  }

  send(_reply: Http1Reply, data: string | Buffer, encoding: BufferEncoding, done?: () => void): boolean {
    if (this.#isClosed) return true
    if (typeof data === 'string' && encoding === 'latin1' && data.length <= maxBatchedLength) {
      this.#out += data
      if (!this.#isFlushScheduled) {
        this.#isFlushScheduled = true
        process.nextTick(this.#flush)
      } else if (this.#out.length > maxBatchedLength) this.#flushNow()
      return !this.#socket.writableNeedDrain
    }
    // First, so that the text before the data leaves with it.
    this.#cork()
    this.#flushNow()
    return typeof data === 'string' ? this.#socket.write(data, encoding, done) : this.#socket.write(data, done)
  }

  finish(_reply: Http1Reply): void {
    this.#hasAnswered = true
    this.#sweepsWithoutInput = 0
    const replies = this.#replies
    do {
      replies.shift()?.close(false)
    } while (replies[0]?.activate())
    if (replies.length === 0 && this.#isStopping) this.#end()
    else if (replies.length === 0 && this.#isDelegating) this.#delegate()
    else if (this.#unreadBytes > 0 || this.#isPaused) this.#readSoon()
  }

  isLast(reply: Http1Reply): boolean {
    return this.#isStopping && this.#replies.at(-1) === reply
  }

  bufferedBytes(): number {
    return this.#out.length + this.#socket.writableLength
  }

  /** Unsent bytes of all pipelined responses, including those that wait for the response being sent. */
  get writableLength(): number {
    let held = 0
    for (const reply of this.#replies) held += reply.deferredBytes
    return held + this.bufferedBytes()
  }

  destroy(): void {
    this.#socket.destroy()
  }

  readonly #onData = (chunk: Buffer) => {
    if (this.#unreadBytes === 0) {
      this.#sweepsWithoutInput = 0
      this.#unread = chunk
    } else {
      this.#chunks ??= []
      this.#chunks.push(chunk)
    }
    this.#unreadBytes += chunk.length
    if (this.#unreadBytes >= this.#neededBytes) this.#read()
  }

  #read(): void {
    // A response may be finished while its request is still being dispatched.
    if (this.#isReading || this.#isClosed || this.#isDelegating || this.#isStopping) return
    this.#isReading = true
    if (this.#chunks) {
      this.#unread = Buffer.concat([this.#unread, ...this.#chunks], this.#unreadBytes)
      this.#chunks = undefined
    }
    const bytes = this.#unread
    let at = 0
    this.#neededBytes = 0
    while (at < bytes.length && this.#mayRead()) {
      const end = bytes.indexOf(headEnd, at)
      if (end < 0 && bytes.length - at <= maxHeadBytes) break
      const head = end < 0 || end - at > maxHeadBytes ? undefined : readHead(bytes.toString('latin1', at, end), this.#last)
      if (!head || head.contentLength > maxBufferedBodyBytes || this.#options.usesNodeHttp(head.url)) {
        this.#isDelegating = true
        break
      }
      const bodyAt = end + headEnd.length
      const next = bodyAt + head.contentLength
      if (next > bytes.length) {
        this.#neededBytes = next - at
        break
      }
      this.#last = head
      at = next
      this.#dispatch(head, head.contentLength > 0 ? bytes.subarray(bodyAt, next) : emptyBuffer)
    }
    this.#unread = at === bytes.length ? emptyBuffer : bytes.subarray(at)
    this.#unreadBytes = bytes.length - at
    this.#isReading = false
    if (this.#isDelegating) {
      this.#pause(true)
      if (this.#replies.length === 0) this.#delegate()
    } else this.#pause(!this.#mayRead())
  }

  #mayRead(): boolean {
    const unsent = this.#replies.length === 0 ? this.#socket.writableLength : this.writableLength
    return this.#replies.length < maxPipelined && unsent <= maxUnsentBytes && !this.#isStopping && !this.#isClosed
  }

  #pause(isPaused: boolean): void {
    if (this.#isPaused === isPaused) return
    this.#isPaused = isPaused
    if (isPaused) this.#socket.pause()
    else this.#socket.resume()
  }

  #dispatch({ method, url, headers }: Head, body: Buffer): void {
    const reply = new Http1Reply(this, method === 'HEAD')
    if (this.#replies.length > 0) reply.defer()
    this.#replies.push(reply)
    this.#options.handler(new Http1Request(method, url, headers, this.#socket, body), reply)
  }

  // Deferred: thousands of pipelined requests with immediate responses would recurse too deep.
  #readSoon(): void {
    if (!this.#isReading && this.#unreadBytes >= this.#neededBytes) process.nextTick(() => this.#read())
  }

  #delegate(): void {
    this.#flushNow()
    const socket = this.#socket
    this.#isClosed = true
    socket.off('data', this.#onData)
    socket.off('drain', this.#onDrain)
    socket.off('end', this.#onEnd)
    socket.off('close', this.#onClose)
    socket.off('error', this.#onError)
    this.#options.onClose(this)
    if (!socket.destroyed) this.#options.onDelegate(socket, this.#unread)
  }

  #reject(status: string): void {
    this.#flushNow()
    this.#socket.end(`HTTP/1.1 ${status}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`)
    this.#socket.destroySoon()
  }

  #end(): void {
    this.#flushNow()
    this.#socket.end()
    this.#socket.destroySoon()
  }

  /** What is written in one tick, such as a chunk and its length, leaves in one write. */
  #cork(): void {
    if (this.#socket.writableCorked > 0) return
    this.#socket.cork()
    process.nextTick(() => this.#socket.uncork())
  }

  readonly #flush = () => {
    this.#isFlushScheduled = false
    this.#flushNow()
  }

  #flushNow(): void {
    const out = this.#out
    if (out === '') return
    this.#out = ''
    this.#socket.write(out, 'latin1')
  }

  readonly #onDrain = () => {
    const [first] = this.#replies
    first?.emit('drain')
    if (this.#isPaused && !this.#isDelegating) this.#readSoon()
  }

  // The client has closed its side: as in node:http, responses in progress are dropped.
  readonly #onEnd = () => {
    if (this.#replies.length === 0) this.#end()
    else this.#socket.destroySoon()
  }

  readonly #onClose = () => {
    this.#isClosed = true
    this.#options.onClose(this)
    for (const reply of this.#replies.splice(0)) reply.close(true)
  }

  // 'close' follows.
  readonly #onError = () => {}
}

class Http1Request implements HttpRequest {
  readonly method: string
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly socket: Socket
  readonly body: Buffer

  constructor(method: string, url: string, headers: Readonly<Record<string, string>>, socket: Socket, body: Buffer) {
    this.method = method
    this.url = url
    this.headers = headers
    this.socket = socket
    this.body = body
  }

  // The body has been read already, so there are no events.
  on(): this {
    return this
  }

  removeAllListeners(): this {
    return this
  }

  resume(): this {
    return this
  }
}
