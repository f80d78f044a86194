import { connect as connectPlain, isIP, type Socket } from 'node:net'
import { withCode } from './connection-error.ts'
import { onAbort } from './on-abort.ts'
import { type ParsedResponse, ResponseParser } from './response-parser.ts'
import type { TlsOptions } from './tls-options.ts'
import type { TransportResponse } from './transport.ts'

/** A serialized request: each character of `text` is a byte. `sentMs` is when it was passed to its connection. */
export type PendingRequest = {
  text: string
  sentMs: number
  timeoutMs: number
  /** It is not written any more; if it was written already, its response is discarded. */
  isCanceled: boolean
  /** Called immediately before it is written; if it throws, nothing is written. */
  beforeSend: (() => void) | undefined
  /** Resets the connection if it aborts between the writing of the request and its response. */
  resetSignal: AbortSignal | undefined
  /** As in `TransportRequest`. */
  batchKey: string | undefined
  /** Set by the connection: stops listening to `resetSignal`. */
  unsubscribe?: (() => void) | undefined
  resolve(response: TransportResponse): void
  reject(error: unknown): void
}

export type PipelinedConnectionOptions = {
  origin: string
  socketPath?: string | undefined
  tls: TlsOptions
  connectTimeoutMs: number
  keepAliveMs: number
  maxResponseBytes: number
}

/** `onCapacity` follows every response; `onClosed` receives the requests that the server cannot have processed. */
export type PipelinedConnectionObserver = { onCapacity(): void; onClosed(unsent: PendingRequest[]): void }

/** One HTTP/1.1 connection: it sends requests in order, and receives their responses in the same order. */
export class PipelinedConnection {
  readonly #observer: PipelinedConnectionObserver
  readonly #tcp: Socket
  /** The same, or TLS over it once it is connected. */
  #socket: Socket
  readonly #parser: ResponseParser
  /** In the order of sending. Invariant: the next response belongs to `#inFlight[#head]`. */
  #inFlight: PendingRequest[] = []
  #head = 0
  /** Accepted but not written yet: the tail of `#inFlight`. */
  #unwritten: PendingRequest[] = []
  #isOpen = false
  #isDraining = false
  #isClosed = false
  #isFlushScheduled = false
  #hasKeepAliveLimit = false
  #idleLimitMs: number
  #lastReadMs: number

  constructor(options: PipelinedConnectionOptions, observer: PipelinedConnectionObserver) {
    this.#observer = observer
    this.#idleLimitMs = options.keepAliveMs
    this.#parser = new ResponseParser(options.maxResponseBytes)
    this.#lastReadMs = performance.now()
    const isTls = options.socketPath === undefined && new URL(options.origin).protocol === 'https:'
    const tcp = connectPlain(addressOf(options))
    this.#tcp = tcp
    this.#socket = tcp
    tcp.setNoDelay(true)
    tcp.setKeepAlive(true, 30_000)
    const timeout = setTimeout(() => this.#fail(withCode('connect timed out', 'ERR_CONNECT_TIMEOUT')), options.connectTimeoutMs)
    tcp.on('error', error => {
      clearTimeout(timeout)
      this.#fail(error)
    })
    const onClose = () => {
      clearTimeout(timeout)
      try {
        this.#parser.end((response, isLast) => this.#complete(response, isLast))
      } catch (error) {
        this.#fail(error)
      }
      this.#fail(withCode('connection closed by the server', 'ERR_CONNECTION_CLOSED'))
    }
    const onOpen = (socket: Socket) => {
      clearTimeout(timeout)
      this.#isOpen = true
      this.#lastReadMs = performance.now()
      socket.on('data', chunk => this.#read(chunk as Buffer))
      this.#flush()
    }
    tcp.on('close', onClose)
    tcp.once('connect', () => {
      if (!isTls) {
        onOpen(tcp)
        return
      }
      // TLS over a socket of our own: only that can be reset.
      const secure = openTls(tcp, options)
      this.#socket = secure
      tcp.off('close', onClose)
      secure.once('secureConnect', () => onOpen(secure))
      secure.on('error', error => {
        clearTimeout(timeout)
        this.#fail(error)
      })
      secure.on('close', onClose)
    })
  }

  get acceptsRequests(): boolean {
    return !this.#isDraining && !this.#isClosed
  }

  /** Whether a further request leaves in the same write as all that are in flight. */
  get canJoinBatch(): boolean {
    return this.#isFlushScheduled && this.acceptsRequests && this.#unwritten.length === this.inFlight
  }

  get inFlight(): number {
    return this.#inFlight.length - this.#head
  }

  send(pending: PendingRequest): void {
    pending.sentMs = performance.now()
    this.#inFlight.push(pending)
    this.#unwritten.push(pending)
    if (this.#isFlushScheduled || !this.#isOpen) return
    this.#isFlushScheduled = true
    // After the responses of this turn of the event loop are read, so that the requests that follow from them leave in one write.
    setImmediate(() => this.#flush())
  }

  /** Accepts no further requests, and closes after the last response. */
  drain(): void {
    this.#isDraining = true
    if (this.inFlight === 0) this.destroy(new Error('the connection was drained'))
  }

  destroy(error: Error): void {
    this.#fail(error)
  }

  /** Closes a connection that is silent for longer than the timeout of its oldest request, or idle for longer than the server keeps it. */
  checkTimeouts(nowMs: number): void {
    const oldest = this.#inFlight[this.#head]
    if (!oldest) {
      if (nowMs - this.#lastReadMs > this.#idleLimitMs) this.drain()
      return
    }
    const silentMs = nowMs - Math.max(this.#lastReadMs, oldest.sentMs)
    if (silentMs <= oldest.timeoutMs) return
    oldest.reject(
      this.#parser.isMidResponse
        ? withCode('the response body stalled', 'ERR_RESPONSE_BODY_TIMEOUT')
        : withCode('the response timed out', 'ERR_RESPONSE_TIMEOUT'),
    )
    this.#fail(withCode('connection closed: an earlier response on it timed out', 'ERR_CONNECTION_CLOSED'))
  }

  #flush(): void {
    this.#isFlushScheduled = false
    if (this.#isClosed || this.#unwritten.length === 0) return
    let text = ''
    let dropped: Set<PendingRequest> | undefined
    for (const pending of this.#unwritten) {
      if (!maySend(pending)) {
        dropped ??= new Set()
        dropped.add(pending)
        continue
      }
      text += pending.text
      if (pending.resetSignal) pending.unsubscribe = onAbort(pending.resetSignal, () => this.#reset())
    }
    this.#unwritten = []
    if (text !== '') this.#socket.write(text, 'latin1')
    if (dropped) this.#drop(dropped)
  }

  /** Requests that were not written get no response, which would make room for others. */
  #drop(dropped: ReadonlySet<PendingRequest>): void {
    this.#inFlight = this.#inFlight.slice(this.#head).filter(pending => !dropped.has(pending))
    this.#head = 0
    if (this.#isDraining && this.inFlight === 0) this.destroy(new Error('the connection was drained'))
    else this.#observer.onCapacity()
  }

  #read(chunk: Buffer): void {
    this.#lastReadMs = performance.now()
    try {
      this.#parser.push(chunk, (response, isLast) => this.#complete(response, isLast))
    } catch (error) {
      this.#fail(error)
      return
    }
    if (this.#isDraining && this.inFlight === 0) this.destroy(new Error('the connection was drained'))
    else if (!this.#isClosed) this.#observer.onCapacity()
  }

  #complete(response: ParsedResponse, isLast: boolean): void {
    const pending = this.#inFlight[this.#head]
    // A response without a request: a server or proxy states why it closes an idle connection.
    if (!pending) {
      this.#fail(withCode('connection closed by the server', 'ERR_CONNECTION_CLOSED'))
      return
    }
    pending.unsubscribe?.()
    this.#inFlight[this.#head++] = undefined as unknown as PendingRequest
    if (this.#head === this.#inFlight.length) {
      this.#inFlight.length = 0
      this.#head = 0
    } else if (this.#head > 256) {
      this.#inFlight = this.#inFlight.slice(this.#head)
      this.#head = 0
    }
    if (!this.#hasKeepAliveLimit) {
      this.#hasKeepAliveLimit = true
      const serverLimitMs = response.keepAliveMs
      if (serverLimitMs !== undefined) this.#idleLimitMs = Math.min(this.#idleLimitMs, Math.max(1_000, serverLimitMs - 1_000))
    }
    if (!pending.isCanceled) pending.resolve(response)
    // RFC 9112 9.6: the server has not processed, and will not process, the requests behind this one.
    if (isLast) this.#close(this.#clearInFlight())
  }

  #clearInFlight(): PendingRequest[] {
    const remaining = this.#inFlight.slice(this.#head)
    for (const pending of remaining) {
      pending.unsubscribe?.()
      pending.unsubscribe = undefined
    }
    this.#inFlight = []
    this.#head = 0
    this.#unwritten = []
    return remaining
  }

  /** Closes the connection so that the system discards what it has not sent, or would send again. A Unix socket has no such state. */
  #reset(): void {
    if (this.#isClosed) return
    if (this.#tcp.remotePort !== undefined) this.#tcp.resetAndDestroy()
    this.#fail(withCode('connection reset: the sender of a request on it lost its right to write', 'ECONNRESET'))
  }

  #fail(error: unknown): void {
    if (this.#isClosed) return
    const unwritten = new Set(this.#isOpen ? this.#unwritten : [])
    const remaining = this.#clearInFlight()
    // A request that was never written may be sent on another connection, whatever its method.
    this.#close(remaining.filter(pending => unwritten.has(pending)))
    for (const pending of remaining) if (!unwritten.has(pending) && !pending.isCanceled) pending.reject(error)
  }

  #close(unsent: PendingRequest[]): void {
    if (this.#isClosed) return
    this.#isClosed = true
    this.#socket.destroy()
    this.#observer.onClosed(unsent)
  }
}

/** Its signal may have aborted, or its sender may have lost its right to write, while it waited for the connection. */
function maySend(pending: PendingRequest): boolean {
  if (pending.isCanceled) return false
  try {
    pending.beforeSend?.()
    return true
  } catch (error) {
    pending.reject(error)
    return false
  }
}

function addressOf({ origin, socketPath }: PipelinedConnectionOptions): { path: string } | { host: string; port: number } {
  if (socketPath !== undefined) return { path: socketPath }
  const { protocol, port } = new URL(origin)
  return { host: hostOf(origin), port: Number(port || (protocol === 'http:' ? 80 : 443)) }
}

function hostOf(origin: string): string {
  const { hostname } = new URL(origin)
  return hostname.startsWith('[') ? hostname.slice(1, -1) : hostname
}

function openTls(socket: Socket, { origin, tls }: PipelinedConnectionOptions): Socket {
  const host = hostOf(origin)
  // An import of node:tls evaluates all of its exports, including the root certificates: 10 ms.
  return process.getBuiltinModule('node:tls').connect({
    socket,
    host,
    ...tls,
    ALPNProtocols: ['http/1.1'],
    servername: tls.servername ?? (isIP(host) ? undefined : host),
  })
}
