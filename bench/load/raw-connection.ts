import { connect, type TLSSocket } from 'node:tls'

/** The address of a server. An empty `ca` trusts any certificate: the peer generates its own. */
export type Endpoint = { host: string; port: number; ca: string; token: string }
export type Answer = { status: number; body: Buffer; firstByteAtMs: number }

const headEnd = Buffer.from('\r\n\r\n')

/**
 * One keep-alive HTTP/1.1 connection over TLS, one request at a time, with minimal overhead:
 * a load generator on the same two cores as the server must not dominate the measurement.
 * Supports responses with Content-Length or chunked bodies.
 */
export class RawConnection {
  readonly #socket: TLSSocket
  readonly #head: string
  #buffer: Buffer = Buffer.alloc(0)
  #parts: Buffer[] = []
  #partBytes = 0
  #wantedBytes = 0
  #isLongChunked = false
  #firstByteAtMs = 0
  #onChunk: ((chunk: Buffer) => void) | undefined
  #waiting: { resolve: (answer: Answer) => void; reject: (error: Error) => void } | undefined

  private constructor(socket: TLSSocket, endpoint: Endpoint) {
    this.#socket = socket
    this.#head = `Host: ${endpoint.host}:${endpoint.port}\r\nAuthorization: Bearer ${endpoint.token}\r\nAccept: application/json\r\n`
    socket.on('data', (chunk: Buffer) => {
      if (this.#onChunk) {
        this.#onChunk(chunk)
        return
      }
      if (this.#parts.length === 0) this.#firstByteAtMs = performance.now()
      this.#parts.push(chunk)
      this.#partBytes += chunk.length
      // A body of 100 MB arrives in thousands of chunks: they are joined once, at the end.
      if (this.#partBytes < this.#wantedBytes || (this.#isLongChunked && !endsChunked(chunk))) return
      this.#buffer = this.#parts.length === 1 ? chunk : Buffer.concat(this.#parts)
      this.#tryFinish()
    })
    socket.on('error', error => this.#fail(error))
    socket.on('close', () => this.#fail(new Error('the server closed the connection')))
  }

  static async open(endpoint: Endpoint): Promise<RawConnection> {
    const { host, port, ca } = endpoint
    const socket = connect({ host, port, servername: 'localhost', ...(ca ? { ca } : { rejectUnauthorized: false }) })
    await new Promise<void>((resolve, reject) => socket.once('secureConnect', resolve).once('error', reject))
    socket.setNoDelay(true)
    return new RawConnection(socket, endpoint)
  }

  /** Sends one request and waits for the whole response. */
  request(method: string, path: string, body = '', contentType = 'application/json'): Promise<Answer> {
    const length = body === '' ? '' : `Content-Type: ${contentType}\r\nContent-Length: ${Buffer.byteLength(body)}\r\n`
    return new Promise((resolve, reject) => {
      this.#waiting = { resolve, reject }
      this.#socket.write(`${method} ${path} HTTP/1.1\r\n${this.#head}${length}\r\n${body}`)
    })
  }

  /** Sends one GET and passes each chunk of the response to `onChunk`. */
  stream(path: string, onChunk: (chunk: Buffer) => void): void {
    this.#onChunk = onChunk
    this.#socket.write(`GET ${path} HTTP/1.1\r\n${this.#head}\r\n`)
  }

  /** Sends one GET with a chunked response and counts its bytes without storing them. */
  count(path: string): Promise<{ status: number; bytes: number; firstByteAtMs: number }> {
    return new Promise((resolve, reject) => {
      let status = 0
      let bytes = 0
      let firstByteAtMs = 0
      let tail: Buffer = Buffer.alloc(0)
      this.#waiting = { resolve: () => {}, reject }
      this.stream(path, chunk => {
        if (bytes === 0) {
          firstByteAtMs = performance.now()
          status = Number(chunk.toString('latin1', 9, 12))
        }
        bytes += chunk.length
        tail = chunk.length >= lastChunk.length ? chunk : Buffer.concat([tail.subarray(-lastChunk.length), chunk])
        if (!endsChunked(tail)) return
        this.#onChunk = undefined
        this.#waiting = undefined
        resolve({ status, bytes, firstByteAtMs })
      })
    })
  }

  close(): void {
    this.#waiting = undefined
    this.#socket.destroy()
  }

  #tryFinish(): void {
    const end = this.#buffer.indexOf(headEnd)
    if (end < 0 || !this.#waiting) return
    const head = this.#buffer.toString('latin1', 0, end).toLowerCase()
    const isChunked = head.includes('transfer-encoding: chunked')
    const body = isChunked ? this.#chunked(end + 4) : this.#sized(head, end + 4)
    if (!body) {
      this.#isLongChunked = isChunked
      return
    }
    const { resolve } = this.#waiting
    this.#waiting = undefined
    this.#parts = []
    this.#partBytes = 0
    this.#wantedBytes = 0
    this.#isLongChunked = false
    resolve({ status: Number(head.slice(9, 12)), body, firstByteAtMs: this.#firstByteAtMs })
  }

  #sized(head: string, start: number): Buffer | undefined {
    const length = Number(/content-length: (\d+)/.exec(head)?.[1] ?? 0)
    this.#wantedBytes = start + length
    if (this.#buffer.length < start + length) return undefined
    return this.#buffer.subarray(start, start + length)
  }

  #chunked(start: number): Buffer | undefined {
    const parts: Buffer[] = []
    for (let at = start; ; ) {
      const lineEnd = this.#buffer.indexOf('\r\n', at)
      if (lineEnd < 0) return undefined
      const size = Number.parseInt(this.#buffer.toString('latin1', at, lineEnd), 16)
      const next = lineEnd + 2 + size + 2
      if (this.#buffer.length < next) return undefined
      if (size === 0) return Buffer.concat(parts)
      parts.push(this.#buffer.subarray(lineEnd + 2, lineEnd + 2 + size))
      at = next
    }
  }

  #fail(error: Error): void {
    this.#waiting?.reject(error)
    this.#waiting = undefined
  }
}

const lastChunk = Buffer.from('0\r\n\r\n')

// Misses an end that is split between two chunks; the next chunk then ends the body.
function endsChunked(chunk: Buffer): boolean {
  return chunk.length < lastChunk.length || chunk.subarray(-lastChunk.length).equals(lastChunk)
}
