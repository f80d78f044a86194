import { connect, type TLSSocket } from 'node:tls'

export type Endpoint = { host: string; port: number; ca: string; token: string }
export type Answer = { status: number; body: Buffer }

const headEnd = Buffer.from('\r\n\r\n')

/**
 * One keep-alive HTTP/1.1 connection over TLS, one request at a time, with as little of its own work as possible:
 * a load generator on the same two cores as the server must not be what is measured.
 * Understands answers with Content-Length or chunked bodies.
 */
export class RawConnection {
  readonly #socket: TLSSocket
  readonly #head: string
  #buffer: Buffer = Buffer.alloc(0)
  #waiting: { resolve: (answer: Answer) => void; reject: (error: Error) => void } | undefined

  private constructor(socket: TLSSocket, endpoint: Endpoint) {
    this.#socket = socket
    this.#head = `Host: ${endpoint.host}:${endpoint.port}\r\nAuthorization: Bearer ${endpoint.token}\r\nAccept: application/json\r\n`
    socket.on('data', (chunk: Buffer) => {
      this.#buffer = this.#buffer.length === 0 ? chunk : Buffer.concat([this.#buffer, chunk])
      this.#tryFinish()
    })
    socket.on('error', error => this.#fail(error))
    socket.on('close', () => this.#fail(new Error('the server closed the connection')))
  }

  static async open(endpoint: Endpoint): Promise<RawConnection> {
    const socket = connect({ host: endpoint.host, port: endpoint.port, ca: endpoint.ca, servername: 'localhost' })
    await new Promise<void>((resolve, reject) => socket.once('secureConnect', resolve).once('error', reject))
    socket.setNoDelay(true)
    return new RawConnection(socket, endpoint)
  }

  /** Sends one request and waits for its whole answer. */
  request(method: string, path: string, body = '', contentType = 'application/json'): Promise<Answer> {
    const length = body === '' ? '' : `Content-Type: ${contentType}\r\nContent-Length: ${Buffer.byteLength(body)}\r\n`
    return new Promise((resolve, reject) => {
      this.#waiting = { resolve, reject }
      this.#socket.write(`${method} ${path} HTTP/1.1\r\n${this.#head}${length}\r\n${body}`)
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
    const body = head.includes('transfer-encoding: chunked') ? this.#chunked(end + 4) : this.#sized(head, end + 4)
    if (!body) return
    const { resolve } = this.#waiting
    this.#waiting = undefined
    resolve({ status: Number(head.slice(9, 12)), body })
  }

  #sized(head: string, start: number): Buffer | undefined {
    const length = Number(/content-length: (\d+)/.exec(head)?.[1] ?? 0)
    if (this.#buffer.length < start + length) return undefined
    const body = this.#buffer.subarray(start, start + length)
    this.#buffer = this.#buffer.subarray(start + length)
    return body
  }

  #chunked(start: number): Buffer | undefined {
    const parts: Buffer[] = []
    for (let at = start; ; ) {
      const lineEnd = this.#buffer.indexOf('\r\n', at)
      if (lineEnd < 0) return undefined
      const size = Number.parseInt(this.#buffer.toString('latin1', at, lineEnd), 16)
      const next = lineEnd + 2 + size + 2
      if (this.#buffer.length < next) return undefined
      if (size === 0) {
        this.#buffer = this.#buffer.subarray(next)
        return Buffer.concat(parts)
      }
      parts.push(this.#buffer.subarray(lineEnd + 2, lineEnd + 2 + size))
      at = next
    }
  }

  #fail(error: Error): void {
    this.#waiting?.reject(error)
    this.#waiting = undefined
  }
}
