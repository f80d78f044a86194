import { once } from 'node:events'
import { connect as connectPlain, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'

export type FuzzResponse = { status: number; headers: ReadonlyMap<string, string>; body: string }

/** `one`: a request with one response. `head`: its response may be a stream that does not end. `any`: malformed, with any number of responses. `abort`: the client disconnects. */
export type Expectation = 'one' | 'head' | 'any' | 'abort'

/** A server may take this long on a busy machine; a request without a response by then hangs. */
const responseTimeoutMs = 20_000
/** For further responses to a malformed request, which may be several, or none. */
const furtherMs = 25

/** Sends raw bytes to one address, over one connection at a time. */
export class FuzzClient {
  readonly #address: string
  #socket: Socket | undefined

  constructor(address: string) {
    this.#address = address
  }

  /** @throws {Error} if a response is malformed, or there is neither a response nor the end of the connection. */
  async send(bytes: Buffer, expectation: Expectation, isHead: boolean): Promise<FuzzResponse[]> {
    // A server closes idle connections.
    const socket = this.#socket?.readable && this.#socket.writable ? this.#socket : await this.#open()
    this.#socket = undefined
    if (expectation === 'abort') {
      socket.write(bytes)
      await new Promise(setImmediate)
      socket.destroy()
      return []
    }
    let received = Buffer.alloc(0)
    let isClosed = false
    const wake = { resolve: () => {} }
    const onData = (chunk: Buffer) => {
      received = Buffer.concat([received, chunk])
      wake.resolve()
    }
    const onClose = () => {
      isClosed = true
      wake.resolve()
    }
    socket.on('data', onData).on('close', onClose)
    const woken = async (timeoutMs: number): Promise<void> => {
      const { promise, resolve } = Promise.withResolvers<void>()
      wake.resolve = resolve
      const timer = setTimeout(resolve, timeoutMs)
      await promise
      clearTimeout(timer)
    }
    const startMs = performance.now()
    const responses: FuzzResponse[] = []
    socket.write(bytes)
    try {
      for (;;) {
        while (expectation !== 'head' || responses.length === 0) {
          const parsed = parseResponse(received, { isHead, isClosed, headOnly: expectation === 'head' })
          if (!parsed) break
          received = received.subarray(parsed.length)
          if (parsed.response.status >= 200) responses.push(parsed.response)
        }
        if (isClosed) {
          // A connection that the server closes within a response is an error, except where it reports one in this way: in a stream.
          if (received.length > 0 && expectation === 'one')
            throw new Error(`incomplete response: ${received.toString('latin1').slice(0, 500)}`)
          return responses
        }
        if (responses.length > 0 && expectation !== 'any') {
          if (expectation === 'one' && received.length > 0) throw new Error(`two responses: ${received.toString('latin1').slice(0, 500)}`)
          const isReusable =
            (expectation === 'one' || responses[0]?.headers.has('content-length')) &&
            responses[0]?.headers.get('connection')?.toLowerCase() !== 'close'
          if (isReusable) this.#socket = socket.off('data', onData).off('close', onClose)
          return responses
        }
        const waitedMs = performance.now() - startMs
        if (expectation === 'any' && waitedMs >= furtherMs) return responses
        if (waitedMs > responseTimeoutMs) throw new Error(`no response within ${responseTimeoutMs} ms`)
        await woken(expectation === 'any' ? furtherMs : responseTimeoutMs)
      }
    } finally {
      if (this.#socket !== socket) socket.destroy()
    }
  }

  close(): void {
    this.#socket?.destroy()
    this.#socket = undefined
  }

  async #open(): Promise<Socket> {
    if (this.#address.startsWith('/')) return await opened(connectPlain(this.#address), 'connect')
    const { protocol, hostname: host, port } = new URL(this.#address)
    if (protocol === 'http:') return await opened(connectPlain({ host, port: Number(port) }), 'connect')
    return await opened(connectTls({ host, port: Number(port), rejectUnauthorized: false }), 'secureConnect')
  }
}

async function opened(socket: Socket, event: string): Promise<Socket> {
  await once(socket, event)
  // Kept for the life of the socket: the server resets connections with malformed requests.
  return socket.on('error', () => {})
}

/** The first response in `bytes`; undefined if it is incomplete. @throws {Error} if it is not HTTP/1.1. */
function parseResponse(
  bytes: Buffer,
  { isHead, isClosed, headOnly }: { isHead: boolean; isClosed: boolean; headOnly: boolean },
): { response: FuzzResponse; length: number } | undefined {
  if (bytes.length === 0) return undefined
  const headEnd = bytes.indexOf('\r\n\r\n')
  if (headEnd < 0) {
    if (!'HTTP/1.1 '.startsWith(bytes.subarray(0, 9).toString('latin1')))
      throw new Error(`no HTTP response: ${bytes.toString('latin1').slice(0, 500)}`)
    return undefined
  }
  const [statusLine = '', ...lines] = bytes.subarray(0, headEnd).toString('latin1').split('\r\n')
  const status = Number(/^HTTP\/1\.1 ([1-5]\d\d)( [\x20-\x7e]*)?$/.exec(statusLine)?.[1] ?? 0)
  if (status === 0) throw new Error(`invalid status line: ${statusLine.slice(0, 500)}`)
  const headers = new Map<string, string>()
  for (const line of lines) {
    const [, name, value] = /^([!#$%&'*+.^_`|~\w-]+):[ \t]*(.*)$/.exec(line) ?? []
    if (name === undefined || value === undefined) throw new Error(`invalid header: ${line.slice(0, 500)}`)
    headers.set(name.toLowerCase(), value)
  }
  const bodyStart = headEnd + 4
  const done = (body: string, length: number) => ({ response: { status, headers, body }, length })
  if (isHead || (headOnly && !headers.has('content-length')) || status === 204 || status === 304 || status < 200) return done('', bodyStart)
  const length = headers.get('content-length')
  if (length !== undefined) {
    const end = bodyStart + Number(length)
    return bytes.length >= end ? done(bytes.subarray(bodyStart, end).toString(), end) : undefined
  }
  if (headers.get('transfer-encoding') === 'chunked') return parseChunks(bytes, bodyStart, done)
  return isClosed ? done(bytes.subarray(bodyStart).toString(), bytes.length) : undefined
}

function parseChunks<T>(bytes: Buffer, start: number, done: (body: string, length: number) => T): T | undefined {
  const chunks: Buffer[] = []
  for (let at = start; ; ) {
    const lineEnd = bytes.indexOf('\r\n', at)
    if (lineEnd < 0) return undefined
    const text = bytes.subarray(at, lineEnd).toString('latin1')
    if (!/^[0-9a-f]+$/i.test(text)) throw new Error(`invalid chunk length: ${text.slice(0, 100)}`)
    const size = Number.parseInt(text, 16)
    at = lineEnd + 2 + size + 2
    if (bytes.length < at) return undefined
    if (size === 0) return done(Buffer.concat(chunks).toString(), at)
    chunks.push(bytes.subarray(lineEnd + 2, at - 2))
  }
}
