import type { Socket } from 'node:net'
import type { Handler, Incoming } from './handler-types.ts'
import { Http1Reply, type ReplyCarrier } from './http1-reply.ts'
import { type Head, maxHeadBytes, readHead } from './read-head.ts'

export type Http1Options = {
  handler: Handler
  /** Paths that begin with one of these are for node:http. */
  isForNode: (url: string) => boolean
  /** Takes over a connection that says something unusual, from the first byte that was not read here. */
  onUnusual: (socket: Socket, rest: Buffer) => void
  onClose: (connection: Http1Connection) => void
}

const headEnd = Buffer.from('\r\n\r\n')
const nothing = Buffer.alloc(0)
/** Requests under way on one connection; the next one is read when the first of them is answered. */
const maxPipelined = 128
/**
 * A body up to this length is read before it is known whose it is, so a stranger may make us hold that much. A longer one is for
 * node:http, which leaves it on the wire until the request has its turn.
 */
const maxWaitingBodyBytes = 64 * 1024
/** More than this that the client does not take: its next request waits. */
const maxBacklogBytes = 1024 * 1024
/** Answers up to this length wait for the end of the turn, to leave together. */
const maxJoinedLength = 64 * 1024

/**
 * HTTP/1.1 in its plainest form, which is how API clients speak it: one buffer in, one string out, pipelining, and nothing made that
 * a request does not need. Requests are read by {@link readHead}; at the first that is not plain the connection goes to node:http
 * for good. Answers that are ready in one turn of the event loop leave in one write: one TLS record, one system call.
 */
export class Http1Connection implements ReplyCarrier {
  readonly #socket: Socket
  readonly #options: Http1Options
  #unread: Buffer = nothing
  /** Chunks behind `#unread`, put together when there are `#wantedBytes`. */
  #chunks: Buffer[] | undefined
  #unreadBytes = 0
  #wantedBytes = 0
  #last: Head | undefined
  readonly #replies: Http1Reply[] = []
  #out = ''
  #isFlushScheduled = false
  #isPaused = false
  #isReading = false
  #isLeaving = false
  #isStopping = false
  #isClosed = false
  #hasAnswered = false
  #quietSweeps = 0

  constructor(socket: Socket, options: Http1Options) {
    this.#socket = socket
    this.#options = options
    socket.on('data', this.#onData)
    socket.on('drain', this.#onDrain)
    socket.on('end', this.#onEnd)
    socket.on('close', this.#onClose)
    socket.on('error', this.#onError)
  }

  /** Finishes what is under way; what was not read yet is not begun. */
  stop(): void {
    this.#isStopping = true
    if (this.#replies.length === 0) this.#end()
  }

  /**
   * Called at regular times: `idleSweeps` of them without a request, or `slowSweeps` in the middle of one, are too many.
   * A clock for every connection would cost more than it tells.
   */
  sweep(idleSweeps: number, slowSweeps: number): void {
    if (this.#replies.length > 0) return
    this.#quietSweeps++
    if (this.#unreadBytes > 0) {
      if (this.#quietSweeps > slowSweeps) this.#refuse('408 Request Timeout')
    } else if (this.#quietSweeps > (this.#hasAnswered ? idleSweeps : slowSweeps)) this.#end()
  }

  carry(_reply: Http1Reply, data: string | Buffer, encoding: BufferEncoding, done?: () => void): boolean {
    if (this.#isClosed) return true
    if (typeof data === 'string' && encoding === 'latin1' && data.length <= maxJoinedLength) {
      this.#out += data
      if (!this.#isFlushScheduled) {
        this.#isFlushScheduled = true
        process.nextTick(this.#flush)
      } else if (this.#out.length > maxJoinedLength) this.#flushNow()
      return !this.#socket.writableNeedDrain
    }
    this.#flushNow()
    return typeof data === 'string' ? this.#socket.write(data, encoding, done) : this.#socket.write(data, done)
  }

  finish(_reply: Http1Reply): void {
    this.#hasAnswered = true
    this.#quietSweeps = 0
    const replies = this.#replies
    do {
      replies.shift()?.close(false)
    } while (replies[0]?.takeTurn())
    if (replies.length === 0 && this.#isStopping) this.#end()
    else if (replies.length === 0 && this.#isLeaving) this.#leave()
    else if (this.#unreadBytes > 0 || this.#isPaused) this.#readSoon()
  }

  isLast(reply: Http1Reply): boolean {
    return this.#isStopping && this.#replies.at(-1) === reply
  }

  backlog(): number {
    return this.#out.length + this.#socket.writableLength
  }

  /** Also what waits behind the answer that is being sent: bytes of all requests that came one after another. */
  get writableLength(): number {
    let held = 0
    for (const reply of this.#replies) held += reply.heldBytes
    return held + this.backlog()
  }

  destroy(): void {
    this.#socket.destroy()
  }

  readonly #onData = (chunk: Buffer) => {
    if (this.#unreadBytes === 0) {
      this.#quietSweeps = 0
      this.#unread = chunk
    } else {
      this.#chunks ??= []
      this.#chunks.push(chunk)
    }
    this.#unreadBytes += chunk.length
    if (this.#unreadBytes >= this.#wantedBytes) this.#read()
  }

  #read(): void {
    // An answer may be finished while its request is still being handed on.
    if (this.#isReading || this.#isClosed || this.#isLeaving || this.#isStopping) return
    this.#isReading = true
    if (this.#chunks) {
      this.#unread = Buffer.concat([this.#unread, ...this.#chunks], this.#unreadBytes)
      this.#chunks = undefined
    }
    const bytes = this.#unread
    let at = 0
    this.#wantedBytes = 0
    while (at < bytes.length && this.#mayRead()) {
      const end = bytes.indexOf(headEnd, at)
      if (end < 0 && bytes.length - at <= maxHeadBytes) break
      const head = end < 0 || end - at > maxHeadBytes ? undefined : readHead(bytes.toString('latin1', at, end), this.#last)
      if (!head || head.contentLength > maxWaitingBodyBytes || this.#options.isForNode(head.url)) {
        this.#isLeaving = true
        break
      }
      const bodyAt = end + headEnd.length
      const next = bodyAt + head.contentLength
      if (next > bytes.length) {
        this.#wantedBytes = next - at
        break
      }
      this.#last = head
      at = next
      this.#hand(head, head.contentLength > 0 ? bytes.subarray(bodyAt, next) : nothing)
    }
    this.#unread = at === bytes.length ? nothing : bytes.subarray(at)
    this.#unreadBytes = bytes.length - at
    this.#isReading = false
    if (this.#isLeaving) {
      this.#pause(true)
      if (this.#replies.length === 0) this.#leave()
    } else this.#pause(!this.#mayRead())
  }

  #mayRead(): boolean {
    return this.#replies.length < maxPipelined && this.#socket.writableLength <= maxBacklogBytes && !this.#isStopping && !this.#isClosed
  }

  #pause(isPaused: boolean): void {
    if (this.#isPaused === isPaused) return
    this.#isPaused = isPaused
    if (isPaused) this.#socket.pause()
    else this.#socket.resume()
  }

  #hand({ method, url, headers }: Head, body: Buffer): void {
    const reply = new Http1Reply(this, method === 'HEAD')
    if (this.#replies.length > 0) reply.wait()
    this.#replies.push(reply)
    this.#options.handler(new Http1Request(method, url, headers, this.#socket, body), reply)
  }

  // Not at once: thousands of pipelined requests that are answered at once would call themselves ever deeper.
  #readSoon(): void {
    if (!this.#isReading && this.#unreadBytes >= this.#wantedBytes) process.nextTick(() => this.#read())
  }

  #leave(): void {
    this.#flushNow()
    const socket = this.#socket
    this.#isClosed = true
    socket.off('data', this.#onData)
    socket.off('drain', this.#onDrain)
    socket.off('end', this.#onEnd)
    socket.off('close', this.#onClose)
    socket.off('error', this.#onError)
    this.#options.onClose(this)
    if (!socket.destroyed) this.#options.onUnusual(socket, this.#unread)
  }

  #refuse(status: string): void {
    this.#flushNow()
    this.#socket.end(`HTTP/1.1 ${status}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`)
    this.#socket.destroySoon()
  }

  #end(): void {
    this.#flushNow()
    this.#socket.end()
    this.#socket.destroySoon()
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
    if (this.#isPaused && !this.#isLeaving) this.#readSoon()
  }

  // What is under way is for nobody any more, as with node:http.
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

class Http1Request implements Incoming {
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

  // The body is here already: nothing more will happen.
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
