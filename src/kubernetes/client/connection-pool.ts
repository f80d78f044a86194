import { connect as connectPlain, isIP, type Socket } from 'node:net'
import { ClientClosedError, withCode } from './connection-error.ts'
import { onAbort } from './on-abort.ts'
import type { RawResponse } from './read-response.ts'
import { AnswerReader, type LazyAnswer } from './response-reader.ts'
import type { Outgoing } from './transport.ts'

export type PipelineOptions = {
  /** `https://host:port` or `http://host:port`. */
  origin: string
  tls: { ca?: string; cert?: string; key?: string; rejectUnauthorized: boolean; servername?: string }
  /** How many connections are opened before requests begin to wait for one another on them. */
  spread: number
  /** How many requests wait for their answers on one connection, at most, before more than `spread` are opened. */
  depth: number
  maxConnections: number
  connectTimeoutMs: number
  keepAliveMs: number
  maxAnswerBytes: number
}

/** `sentMs` is when it was handed to its connection; `isGone` that nobody waits for its answer any more. */
type Waiting = {
  text: string
  isAscii: boolean
  sentMs: number
  timeoutMs: number
  isGone: boolean
  resolve(answer: RawResponse): void
  reject(error: unknown): void
}

/** How often silence is looked for: timeouts are late by at most this. */
const checkMs = 500

/**
 * Short requests over few HTTP/1.1 connections, several of them under way on each. What is sent in one turn of the event
 * loop leaves in one write per connection: one TLS record and one system call for many requests, on both sides.
 * A connection that breaks fails what waits on it; the caller decides what is sent again, except after
 * `Connection: close`, where the server promised not to have begun.
 */
export class ConnectionPool {
  readonly #options: PipelineOptions
  readonly #host: string
  readonly #connections: Connection[] = []
  readonly #queue: Waiting[] = []
  readonly #sentHeaders: SentHeaders = new Map()
  #queueHead = 0
  #timer: NodeJS.Timeout | undefined
  #isRetired = false
  #isClosed = false

  constructor(options: PipelineOptions) {
    this.#options = options
    this.#host = new URL(options.origin).host
  }

  /** Rejects with an error that has a `code`, or with the reason of the signal. */
  exchange(outgoing: Outgoing): Promise<RawResponse> {
    return new Promise((resolve, reject) => {
      const { signal, timeoutMs } = outgoing
      if (signal?.aborted) return reject(signal.reason)
      if (this.#isClosed) return reject(new ClientClosedError())
      const body = (outgoing.body ?? '') as string
      const bodyBytes = Buffer.byteLength(body)
      const waiting: Waiting = {
        text: requestText(outgoing, this.#host, body, bodyBytes, this.#sentHeaders),
        isAscii: bodyBytes === body.length,
        sentMs: 0,
        timeoutMs,
        isGone: false,
        resolve,
        reject,
      }
      if (signal) {
        const release = onAbort(signal, () => {
          waiting.isGone = true
          reject(signal.reason)
        })
        waiting.resolve = answer => {
          release()
          resolve(answer)
        }
        waiting.reject = error => {
          release()
          reject(error)
        }
      }
      this.#place(waiting)
    })
  }

  /** For the last user's last request: lets what is under way and what waits finish, then closes. */
  retire(): void {
    this.#isRetired = true
    this.#retireIfDrained()
  }

  /** Cuts everything. */
  destroy(): void {
    this.#isClosed = true
    clearInterval(this.#timer)
    const error = new ClientClosedError()
    for (const waiting of this.#queue.splice(this.#queueHead)) waiting.reject(error)
    this.#queue.length = 0
    this.#queueHead = 0
    for (const connection of [...this.#connections]) connection.destroy(error)
  }

  #place(waiting: Waiting): void {
    const { spread, depth, maxConnections } = this.#options
    let best: Connection | undefined
    for (const connection of this.#connections) {
      if (connection.takesMore && (!best || connection.load < best.load)) best = connection
      if (best?.load === 0) break
    }
    const room = best && best.load < depth
    const mayOpen = this.#connections.length < (room ? spread : maxConnections)
    if (best && (best.load === 0 || (room && !mayOpen))) {
      best.send(waiting)
      return
    }
    if (mayOpen) {
      this.#open().send(waiting)
      return
    }
    this.#queue.push(waiting)
  }

  #open(): Connection {
    const connection = new Connection(this.#options, {
      onRoom: () => this.#fill(connection),
      onClosed: unsent => {
        const index = this.#connections.indexOf(connection)
        if (index >= 0) this.#connections.splice(index, 1)
        if (this.#connections.length === 0) {
          clearInterval(this.#timer)
          this.#timer = undefined
        }
        for (const waiting of unsent) {
          if (this.#isClosed) waiting.reject(new ClientClosedError())
          else if (!waiting.isGone) this.#place(waiting)
        }
        if (this.#queue.length > this.#queueHead && !this.#isClosed && this.#connections.length < this.#options.maxConnections) {
          this.#fill(this.#open())
        }
        this.#retireIfDrained()
      },
    })
    this.#connections.push(connection)
    if (!this.#timer) {
      this.#timer = setInterval(() => this.#check(), checkMs)
      this.#timer.unref()
    }
    return connection
  }

  #fill(connection: Connection): void {
    while (this.#queueHead < this.#queue.length && connection.takesMore && connection.load < this.#options.depth) {
      const waiting = this.#queue[this.#queueHead++] as Waiting
      if (!waiting.isGone) connection.send(waiting)
    }
    if (this.#queueHead === this.#queue.length) {
      this.#queue.length = 0
      this.#queueHead = 0
    } else if (this.#queueHead > 1_024) {
      this.#queue.splice(0, this.#queueHead)
      this.#queueHead = 0
    }
    this.#retireIfDrained()
  }

  /** A connection that is retired takes nothing more: as long as requests wait for one, none may be. */
  #retireIfDrained(): void {
    if (!this.#isRetired || this.#queue.length > this.#queueHead) return
    for (const connection of [...this.#connections]) connection.retire()
  }

  #check(): void {
    const nowMs = performance.now()
    for (const connection of [...this.#connections]) connection.check(nowMs)
  }
}

type Owner = { onRoom(): void; onClosed(unsent: Waiting[]): void }

/** One connection: requests leave in their order, and so do answers come. */
class Connection {
  readonly #owner: Owner
  readonly #socket: Socket
  readonly #reader: AnswerReader
  /** In the order they were sent. Invariant: `#inFlight[#head]` is the one whose answer comes next. */
  #inFlight: Waiting[] = []
  #head = 0
  /** Handed over, not written yet. They stand at the end of `#inFlight` too. */
  #unwritten: Waiting[] = []
  #isOpen = false
  #isRetired = false
  #isClosed = false
  #isFlushing = false
  #hasHint = false
  #idleLimitMs: number
  #lastReadMs: number

  constructor(options: PipelineOptions, owner: Owner) {
    this.#owner = owner
    this.#idleLimitMs = options.keepAliveMs
    this.#reader = new AnswerReader(options.maxAnswerBytes)
    this.#lastReadMs = performance.now()
    const socket = open(options)
    this.#socket = socket
    socket.setNoDelay(true)
    socket.setKeepAlive(true, 30_000)
    const isTls = new URL(options.origin).protocol === 'https:'
    const timeout = setTimeout(() => this.#fail(withCode('no connection in time', 'UND_ERR_CONNECT_TIMEOUT')), options.connectTimeoutMs)
    socket.once(isTls ? 'secureConnect' : 'connect', () => {
      clearTimeout(timeout)
      this.#isOpen = true
      this.#lastReadMs = performance.now()
      this.#flush()
    })
    socket.on('data', chunk => this.#read(chunk as Buffer))
    socket.on('error', error => {
      clearTimeout(timeout)
      this.#fail(error)
    })
    socket.on('close', () => {
      clearTimeout(timeout)
      try {
        this.#reader.end((answer, isClosing) => this.#answer(answer, isClosing))
      } catch (error) {
        this.#fail(error)
      }
      this.#fail(withCode('connection closed by the server', 'UND_ERR_SOCKET'))
    })
  }

  get takesMore(): boolean {
    return !this.#isRetired && !this.#isClosed
  }

  get load(): number {
    return this.#inFlight.length - this.#head
  }

  send(waiting: Waiting): void {
    waiting.sentMs = performance.now()
    this.#inFlight.push(waiting)
    this.#unwritten.push(waiting)
    if (this.#isFlushing || !this.#isOpen) return
    this.#isFlushing = true
    // After the answers of this turn were read, so that what they lead to leaves in one write.
    setImmediate(() => this.#flush())
  }

  /** No new requests; closes when the last answer came. */
  retire(): void {
    this.#isRetired = true
    if (this.load === 0) this.destroy(new Error('the connection is not needed any more'))
  }

  destroy(error: Error): void {
    this.#fail(error)
  }

  /** Ends a connection that is silent for longer than its oldest request may wait, or idle for longer than the server keeps it. */
  check(nowMs: number): void {
    const oldest = this.#inFlight[this.#head]
    if (!oldest) {
      if (nowMs - this.#lastReadMs > this.#idleLimitMs) this.retire()
      return
    }
    const silentMs = nowMs - Math.max(this.#lastReadMs, oldest.sentMs)
    if (silentMs <= oldest.timeoutMs) return
    oldest.reject(
      this.#reader.isInside
        ? withCode('the answer stopped in the middle', 'UND_ERR_BODY_TIMEOUT')
        : withCode('no answer in time', 'UND_ERR_HEADERS_TIMEOUT'),
    )
    this.#fail(withCode('connection given up: an answer before this one did not come in time', 'UND_ERR_SOCKET'))
  }

  #flush(): void {
    this.#isFlushing = false
    if (this.#isClosed || this.#unwritten.length === 0) return
    let text = ''
    let isAscii = true
    for (const waiting of this.#unwritten) {
      text += waiting.text
      isAscii &&= waiting.isAscii
    }
    this.#unwritten = []
    this.#socket.write(text, isAscii ? 'latin1' : 'utf8')
  }

  #read(chunk: Buffer): void {
    this.#lastReadMs = performance.now()
    try {
      this.#reader.push(chunk, (answer, isClosing) => this.#answer(answer, isClosing))
    } catch (error) {
      this.#fail(error)
      return
    }
    if (this.#isRetired && this.load === 0) this.destroy(new Error('the connection is not needed any more'))
    else if (!this.#isClosed) this.#owner.onRoom()
  }

  #answer(answer: LazyAnswer, isClosing: boolean): void {
    const waiting = this.#inFlight[this.#head]
    // An answer nobody asked for: a server (or proxy) says why it closes an idle connection.
    if (!waiting) {
      this.#fail(withCode('connection closed by the server', 'UND_ERR_SOCKET'))
      return
    }
    this.#inFlight[this.#head++] = undefined as unknown as Waiting
    if (this.#head === this.#inFlight.length) {
      this.#inFlight.length = 0
      this.#head = 0
    } else if (this.#head > 256) {
      this.#inFlight = this.#inFlight.slice(this.#head)
      this.#head = 0
    }
    if (!this.#hasHint) {
      this.#hasHint = true
      const hintMs = answer.keepAliveHintMs
      if (hintMs !== undefined) this.#idleLimitMs = Math.min(this.#idleLimitMs, Math.max(1_000, hintMs - 1_000))
    }
    if (!waiting.isGone) waiting.resolve(answer)
    // RFC 9112 9.6: what was sent behind it has not been and will not be processed.
    if (isClosing) this.#close(this.#take())
  }

  #take(): Waiting[] {
    const left = this.#inFlight.slice(this.#head)
    this.#inFlight = []
    this.#head = 0
    this.#unwritten = []
    return left
  }

  #fail(error: unknown): void {
    if (this.#isClosed) return
    const unwritten = new Set(this.#isOpen ? this.#unwritten : [])
    const left = this.#take()
    // What never left may go another way, whatever its method.
    this.#close(left.filter(waiting => unwritten.has(waiting)))
    for (const waiting of left) if (!unwritten.has(waiting) && !waiting.isGone) waiting.reject(error)
  }

  #close(unsent: Waiting[]): void {
    if (this.#isClosed) return
    this.#isClosed = true
    this.#socket.destroy()
    this.#owner.onClosed(unsent)
  }
}

function open({ origin, tls }: PipelineOptions): Socket {
  const { protocol, hostname, port } = new URL(origin)
  const host = hostname.startsWith('[') ? hostname.slice(1, -1) : hostname
  if (protocol === 'http:') return connectPlain({ host, port: Number(port || 80) })
  // An import of node:tls reads all that it exports, the root certificates too: 10 ms.
  return process.getBuiltinModule('node:tls').connect({
    host,
    port: Number(port || 443),
    ...tls,
    ALPNProtocols: ['http/1.1'],
    servername: tls.servername ?? (isIP(host) ? undefined : host),
  })
}

const forbiddenInPath = /[^\x21-\x7e]/
const forbiddenInHeader = /[^\t\x20-\x7e\x80-\xff]/

/** The lines of headers as they were last sent, by name: most stay the same from request to request. */
type SentHeaders = Map<string, { value: string; line: string }>

function requestText({ method, path, headers }: Outgoing, host: string, body: string, bodyBytes: number, sent: SentHeaders): string {
  if (forbiddenInPath.test(path)) throw new TypeError(`path ${JSON.stringify(path)} must be percent-encoded`)
  let text = `${method} ${path} HTTP/1.1\r\nhost: ${host}\r\n`
  for (const name in headers) {
    const value = headers[name] as string | string[]
    if (Array.isArray(value)) for (const each of value) text += header(name, each)
    else {
      let known = sent.get(name)
      if (known?.value !== value) {
        known = { value, line: header(name, value) }
        sent.set(name, known)
      }
      text += known.line
    }
  }
  if (bodyBytes > 0 || method === 'POST' || method === 'PUT' || method === 'PATCH') text += `content-length: ${bodyBytes}\r\n`
  return `${text}\r\n${body}`
}

function header(name: string, value: string): string {
  if (forbiddenInHeader.test(value)) throw new TypeError(`header ${name} holds a character that a header cannot hold`)
  return `${name}: ${value}\r\n`
}
