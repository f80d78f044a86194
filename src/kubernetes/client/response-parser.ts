import type { ClientErrorCode } from './connection-error.ts'
import { responseTooLarge, type TransportResponse } from './transport.ts'

/** Thrown for bytes that are not HTTP/1.1, or a response whose end cannot be determined. */
export class InvalidHttpResponseError extends Error {
  override readonly name = 'InvalidHttpResponseError'
  readonly code: ClientErrorCode = 'ERR_INVALID_HTTP_RESPONSE'
}

const headEnd = Buffer.from('\r\n\r\n')
const maxHeadBytes = 65_536
const empty = Buffer.alloc(0)

/** A complete response. Headers are parsed on first access: for most responses they never are. */
export class ParsedResponse implements TransportResponse {
  readonly status: number
  readonly body: string
  readonly #head: string
  #headers: TransportResponse['headers'] | undefined

  constructor(status: number, head: string, body: string) {
    this.status = status
    this.#head = head
    this.body = body
  }

  /** How long the server keeps an idle connection, from its Keep-Alive header. */
  get keepAliveMs(): number | undefined {
    const seconds = keepAliveTimeout.exec(this.#head)?.[1]
    return seconds === undefined ? undefined : Number(seconds) * 1_000
  }

  get headers(): TransportResponse['headers'] {
    this.#headers ??= parseHeaders(this.#head)
    return this.#headers
  }
}

/** `isLast` means that the server accepts no further requests on the connection. */
export type OnResponse = (response: ParsedResponse, isLast: boolean) => void

type ResponseHead = { status: number; text: string; isLast: boolean; body: 'sized' | 'chunked' | 'until-close'; length: number }

/**
 * Parses the bytes of one connection into responses, however they are chunked. Handles Content-Length, chunked bodies and
 * bodies that end with the connection; skips informational responses.
 */
export class ResponseParser {
  readonly #maxBodyBytes: number
  #buffered: Buffer = empty
  #head: ResponseHead | undefined
  #pieces: Buffer[] = []
  #size = 0
  /** Of a chunked body: bytes that remain of the current chunk, including its line end; -1 before a size line, -2 in the trailer. */
  #chunkRemaining = -1

  constructor(maxBodyBytes: number) {
    this.#maxBodyBytes = maxBodyBytes
  }

  /** True between the first and the last byte of a response. */
  get isMidResponse(): boolean {
    return this.#head !== undefined || this.#buffered.length > 0
  }

  /**
   * Calls `onResponse` for each response that `chunk` completes.
   * @throws {InvalidHttpResponseError} if the bytes are not HTTP.
   */
  push(chunk: Buffer, onResponse: OnResponse): void {
    let at = 0
    let data = chunk
    if (this.#buffered.length > 0) {
      data = Buffer.concat([this.#buffered, chunk])
      this.#buffered = empty
    }
    while (at < data.length) {
      if (!this.#head) {
        const end = data.indexOf(headEnd, at)
        if (end < 0) {
          if (data.length - at > maxHeadBytes) throw new InvalidHttpResponseError(`a response head is longer than ${maxHeadBytes} bytes`)
          break
        }
        const head = parseHead(data.toString('latin1', at, end))
        at = end + 4
        if (head.status < 200) continue
        this.#head = head
        this.#chunkRemaining = -1
        if (head.body === 'sized' && head.length > this.#maxBodyBytes) throw responseTooLarge(this.#maxBodyBytes)
        if (head.body === 'sized' && head.length === 0) this.#finish('', onResponse)
        continue
      }
      const { body, length } = this.#head
      if (body === 'sized') {
        const missing = length - this.#size
        if (data.length - at >= missing) {
          const text = this.#pieces.length === 0 ? data.toString('utf8', at, at + missing) : this.#join(data.subarray(at, at + missing))
          at += missing
          this.#finish(text, onResponse)
        } else {
          this.#append(data.subarray(at))
          at = data.length
        }
      } else if (body === 'until-close') {
        this.#append(data.subarray(at))
        at = data.length
      } else {
        const next = this.#parseChunked(data, at, onResponse)
        if (next < 0) break
        at = next
      }
    }
    if (at < data.length) this.#buffered = at === 0 ? data : data.subarray(at)
  }

  /** The connection ended: completes a response without a length; returns false if there is none. */
  end(onResponse: OnResponse): boolean {
    if (this.#head?.body !== 'until-close') return false
    this.#finish(this.#join(empty), onResponse)
    return true
  }

  /** Returns the offset to continue at, or -1 if more bytes are needed. */
  #parseChunked(data: Buffer, at: number, onResponse: OnResponse): number {
    if (this.#chunkRemaining > 0) {
      const available = Math.min(this.#chunkRemaining, data.length - at)
      // The last two bytes of a chunk are its line end.
      const content = Math.min(available, Math.max(0, this.#chunkRemaining - 2))
      if (content > 0) this.#append(data.subarray(at, at + content))
      this.#chunkRemaining -= available
      if (this.#chunkRemaining === 0) this.#chunkRemaining = -1
      return at + available
    }
    const lineEnd = data.indexOf('\r\n', at)
    if (lineEnd < 0) {
      if (data.length - at > maxHeadBytes) throw new InvalidHttpResponseError('a chunk of the response has no size')
      return -1
    }
    const line = data.toString('latin1', at, lineEnd)
    if (this.#chunkRemaining === -2) {
      if (line === '') this.#finish(this.#join(empty), onResponse)
      return lineEnd + 2
    }
    if (!/^[0-9a-fA-F]{1,8}\s*(;|$)/.test(line)) throw new InvalidHttpResponseError('a chunk of the response has no size')
    const size = Number.parseInt(line, 16)
    this.#chunkRemaining = size === 0 ? -2 : size + 2
    return lineEnd + 2
  }

  #append(piece: Buffer): void {
    this.#pieces.push(piece)
    this.#size += piece.length
    if (this.#size > this.#maxBodyBytes) throw responseTooLarge(this.#maxBodyBytes)
  }

  #join(last: Buffer): string {
    return Buffer.concat([...this.#pieces, last]).toString('utf8')
  }

  #finish(body: string, onResponse: OnResponse): void {
    const { status, text, isLast } = this.#head as ResponseHead
    this.#head = undefined
    if (this.#pieces.length > 0) this.#pieces = []
    this.#size = 0
    onResponse(new ParsedResponse(status, text, body), isLast)
  }
}

const statusLine = /^HTTP\/1\.([01]) (\d{3})(?: |\r|$)/
const contentLength = /\r\ncontent-length:[ \t]*(\d+)[ \t]*(?:\r|$)/i
const chunkedBody = /\r\ntransfer-encoding:[ \t]*chunked[ \t]*(?:\r|$)/i
const anyTransferEncoding = /\r\ntransfer-encoding:/i
const connectionClose = /\r\nconnection:[ \t]*close[ \t]*(?:\r|$)/i

function parseHead(text: string): ResponseHead {
  const match = statusLine.exec(text)
  if (!match) throw new InvalidHttpResponseError(`the response is not HTTP/1.1: ${JSON.stringify(text.slice(0, 100))}`)
  const status = Number(match[2])
  const isLast = match[1] === '0' || connectionClose.test(text)
  if (status === 204 || status === 304) return { status, text, isLast, body: 'sized', length: 0 }
  if (anyTransferEncoding.test(text)) {
    if (!chunkedBody.test(text)) throw new InvalidHttpResponseError('the response has a transfer-encoding other than chunked')
    return { status, text, isLast, body: 'chunked', length: 0 }
  }
  const length = contentLength.exec(text)
  if (length) return { status, text, isLast, body: 'sized', length: Number(length[1]) }
  if (status < 200) return { status, text, isLast, body: 'sized', length: 0 }
  return { status, text, isLast: true, body: 'until-close', length: 0 }
}

function parseHeaders(head: string): TransportResponse['headers'] {
  const headers: Record<string, string | string[] | undefined> = {}
  for (const line of head.split('\r\n').slice(1)) {
    const colon = line.indexOf(':')
    if (colon < 1) continue
    const name = line.slice(0, colon).toLowerCase()
    const value = line.slice(colon + 1).trim()
    const previous = headers[name]
    headers[name] = previous === undefined ? value : Array.isArray(previous) ? [...previous, value] : [previous, value]
  }
  return headers
}

const keepAliveTimeout = /\r\nkeep-alive:[^\r]*timeout=(\d+)/i
