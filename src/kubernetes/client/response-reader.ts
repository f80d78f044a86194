import type { RawResponse } from './read-response.ts'

/** Thrown for what is not HTTP/1.1, or not an answer we can know the end of. */
export class ProtocolError extends Error {
  override readonly name = 'ProtocolError'
  readonly code = 'UND_ERR_SOCKET'
}

const headEnd = Buffer.from('\r\n\r\n')
const maxHeadBytes = 65_536
const empty = Buffer.alloc(0)

/** A finished answer whose headers are read only if somebody asks: for most answers nobody does. */
export class LazyAnswer implements RawResponse {
  readonly status: number
  readonly body: string
  readonly #head: string
  #headers: RawResponse['headers'] | undefined

  constructor(status: number, head: string, body: string) {
    this.status = status
    this.#head = head
    this.body = body
  }

  /** How long the server keeps the connection when it is idle, as it says in Keep-Alive. */
  get keepAliveHintMs(): number | undefined {
    const seconds = keepAliveTimeout.exec(this.#head)?.[1]
    return seconds === undefined ? undefined : Number(seconds) * 1_000
  }

  get headers(): RawResponse['headers'] {
    this.#headers ??= parseHeaders(this.#head)
    return this.#headers
  }
}

type Head = { status: number; text: string; isClosing: boolean; body: 'sized' | 'chunked' | 'until-close'; length: number }

/**
 * Cuts the bytes of one connection into answers, wherever its chunks end. Understands Content-Length, chunked bodies,
 * bodies that end with the connection, and informational answers, which it leaves out.
 */
export class AnswerReader {
  readonly #maxBodyBytes: number
  #rest: Buffer = empty
  #head: Head | undefined
  #pieces: Buffer[] = []
  #size = 0
  /** Of a chunked body: what is left of the present chunk, its line end included; -1 while a size line is due, -2 in the trailer. */
  #chunkLeft = -1

  constructor(maxBodyBytes: number) {
    this.#maxBodyBytes = maxBodyBytes
  }

  /** Whether an answer has begun and not ended. */
  get isInside(): boolean {
    return this.#head !== undefined || this.#rest.length > 0
  }

  /**
   * Calls `onAnswer` for each answer finished by `chunk`; `isClosing` tells that the server takes no more requests.
   * @throws {ProtocolError} for what is not HTTP.
   */
  push(chunk: Buffer, onAnswer: (answer: LazyAnswer, isClosing: boolean) => void): void {
    let at = 0
    let data = chunk
    if (this.#rest.length > 0) {
      data = Buffer.concat([this.#rest, chunk])
      this.#rest = empty
    }
    while (at < data.length) {
      if (!this.#head) {
        const end = data.indexOf(headEnd, at)
        if (end < 0) {
          if (data.length - at > maxHeadBytes) throw new ProtocolError(`the head of an answer is longer than ${maxHeadBytes} bytes`)
          break
        }
        const head = readHead(data.toString('latin1', at, end))
        at = end + 4
        if (head.status < 200) continue
        this.#head = head
        this.#chunkLeft = -1
        if (head.body === 'sized' && head.length > this.#maxBodyBytes) throw tooLarge(this.#maxBodyBytes)
        if (head.body === 'sized' && head.length === 0) this.#finish('', onAnswer)
        continue
      }
      const { body, length } = this.#head
      if (body === 'sized') {
        const wanted = length - this.#size
        if (data.length - at >= wanted) {
          const text = this.#pieces.length === 0 ? data.toString('utf8', at, at + wanted) : this.#joined(data.subarray(at, at + wanted))
          at += wanted
          this.#finish(text, onAnswer)
        } else {
          this.#keep(data.subarray(at))
          at = data.length
        }
      } else if (body === 'until-close') {
        this.#keep(data.subarray(at))
        at = data.length
      } else {
        const next = this.#chunked(data, at, onAnswer)
        if (next < 0) break
        at = next
      }
    }
    if (at < data.length) this.#rest = at === 0 ? data : data.subarray(at)
  }

  /** The connection ended: true if that was the end of an answer without a length. */
  end(onAnswer: (answer: LazyAnswer, isClosing: boolean) => void): boolean {
    if (this.#head?.body !== 'until-close') return false
    this.#finish(this.#joined(empty), onAnswer)
    return true
  }

  /** Returns where to go on, or -1 if more bytes are needed. */
  #chunked(data: Buffer, at: number, onAnswer: (answer: LazyAnswer, isClosing: boolean) => void): number {
    if (this.#chunkLeft > 0) {
      const take = Math.min(this.#chunkLeft, data.length - at)
      // The last two bytes of what is left are the line end.
      const content = Math.min(take, Math.max(0, this.#chunkLeft - 2))
      if (content > 0) this.#keep(data.subarray(at, at + content))
      this.#chunkLeft -= take
      if (this.#chunkLeft === 0) this.#chunkLeft = -1
      return at + take
    }
    const lineEnd = data.indexOf('\r\n', at)
    if (lineEnd < 0) {
      if (data.length - at > maxHeadBytes) throw new ProtocolError('a chunk of an answer has no size')
      return -1
    }
    const line = data.toString('latin1', at, lineEnd)
    if (this.#chunkLeft === -2) {
      if (line === '') this.#finish(this.#joined(empty), onAnswer)
      return lineEnd + 2
    }
    if (!/^[0-9a-fA-F]{1,8}\s*(;|$)/.test(line)) throw new ProtocolError('a chunk of an answer has no size')
    const size = Number.parseInt(line, 16)
    this.#chunkLeft = size === 0 ? -2 : size + 2
    return lineEnd + 2
  }

  #keep(piece: Buffer): void {
    this.#pieces.push(piece)
    this.#size += piece.length
    if (this.#size > this.#maxBodyBytes) throw tooLarge(this.#maxBodyBytes)
  }

  #joined(last: Buffer): string {
    return Buffer.concat([...this.#pieces, last]).toString('utf8')
  }

  #finish(body: string, onAnswer: (answer: LazyAnswer, isClosing: boolean) => void): void {
    const { status, text, isClosing } = this.#head as Head
    this.#head = undefined
    if (this.#pieces.length > 0) this.#pieces = []
    this.#size = 0
    onAnswer(new LazyAnswer(status, text, body), isClosing)
  }
}

const statusLine = /^HTTP\/1\.([01]) (\d{3})(?: |\r|$)/
const contentLength = /\r\ncontent-length:[ \t]*(\d+)[ \t]*(?:\r|$)/i
const chunkedBody = /\r\ntransfer-encoding:[ \t]*chunked[ \t]*(?:\r|$)/i
const anyTransferEncoding = /\r\ntransfer-encoding:/i
const closing = /\r\nconnection:[ \t]*close[ \t]*(?:\r|$)/i

function readHead(text: string): Head {
  const match = statusLine.exec(text)
  if (!match) throw new ProtocolError(`the server sent what is not HTTP/1.1: ${JSON.stringify(text.slice(0, 100))}`)
  const status = Number(match[2])
  const isClosing = match[1] === '0' || closing.test(text)
  if (status === 204 || status === 304) return { status, text, isClosing, body: 'sized', length: 0 }
  if (anyTransferEncoding.test(text)) {
    if (!chunkedBody.test(text)) throw new ProtocolError('the server sent an answer in a transfer-encoding other than chunked')
    return { status, text, isClosing, body: 'chunked', length: 0 }
  }
  const length = contentLength.exec(text)
  if (length) return { status, text, isClosing, body: 'sized', length: Number(length[1]) }
  if (status < 200) return { status, text, isClosing, body: 'sized', length: 0 }
  return { status, text, isClosing: true, body: 'until-close', length: 0 }
}

function parseHeaders(head: string): RawResponse['headers'] {
  const headers: Record<string, string | string[] | undefined> = {}
  for (const line of head.split('\r\n').slice(1)) {
    const colon = line.indexOf(':')
    if (colon < 1) continue
    const name = line.slice(0, colon).toLowerCase()
    const value = line.slice(colon + 1).trim()
    const before = headers[name]
    headers[name] = before === undefined ? value : Array.isArray(before) ? [...before, value] : [before, value]
  }
  return headers
}

const keepAliveTimeout = /\r\nkeep-alive:[^\r]*timeout=(\d+)/i

function tooLarge(bytes: number): Error {
  return new Error(`the answer is larger than ${bytes} bytes: list in pages with limit`)
}
