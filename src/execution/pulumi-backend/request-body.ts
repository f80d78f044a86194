import { isUtf8 } from 'node:buffer'
import type { IncomingMessage } from 'node:http'
import { HttpError, readBody } from '../../stores/http/index.ts'
import { exceededJsonLimit } from '../../stores/pulumi/index.ts'

/** A JSON body, and its text for those who need parts of it as they were sent. */
export type JsonBody = { readonly value: unknown; readonly text: string }

export type BodyLimits = {
  /** Of the body, plain and unpacked. */
  readonly maxBytes: number
  /** Levels of nesting. */
  readonly maxDepth: number
  /** Values of the JSON: each takes memory, also if it has one byte. */
  readonly maxValues: number
  /** Without data for this long: 408. */
  readonly idleMs: number
}

/** Reads JSON bodies, plain or gzip. Limits how many are in memory: further requests wait until an earlier one is answered (invariant 10). */
export class BodyReader {
  readonly #limits: BodyLimits
  readonly #maxConcurrent: number
  readonly #waiting: (() => void)[] = []
  #active = 0

  constructor(limits: BodyLimits, maxConcurrent: number) {
    this.#limits = limits
    this.#maxConcurrent = maxConcurrent
  }

  /**
   * Reads the body and keeps its place until `work` ends.
   * @throws {HttpError} 413 above the limit, also while unpacking, or with too many values; 400 unless it is JSON in UTF-8 within the depth; 415 for another encoding; 408.
   */
  async withBody<T>(req: IncomingMessage, work: (body: JsonBody) => Promise<T>): Promise<T> {
    if (this.#active >= this.#maxConcurrent) await new Promise<void>(resolve => this.#waiting.push(resolve))
    else this.#active++
    try {
      return await work(await this.#read(req))
    } finally {
      const next = this.#waiting.shift()
      if (next) next()
      else this.#active--
    }
  }

  async #read(req: IncomingMessage): Promise<JsonBody> {
    const { maxBytes, maxDepth, maxValues, idleMs } = this.#limits
    const encoding = (req.headers['content-encoding'] ?? 'identity').toLowerCase()
    if (encoding !== 'identity' && encoding !== 'gzip' && encoding !== 'x-gzip')
      throw new HttpError(415, 'UnsupportedEncoding', 'the content encoding is not supported; gzip and identity are')
    const received = await readBody(req, { maxBytes, idleMs })
    const bytes = encoding === 'identity' ? received : await gunzip(received, maxBytes)
    if (!isUtf8(bytes)) throw new HttpError(400, 'BadRequest', 'the body is not UTF-8')
    const text = bytes.toString()
    // Requests without content have no body.
    if (text === '') return { value: {}, text: '{}' }
    const exceeded = exceededJsonLimit(text, { maxDepth, maxValues })
    if (exceeded === 'values') throw new HttpError(413, 'TooLarge', `the body has more than ${maxValues} JSON values`)
    try {
      if (exceeded === 'depth') throw new SyntaxError('too deep')
      return { value: JSON.parse(text), text }
    } catch {
      // The parser's message repeats parts of the text, which may be secret (invariant 9).
      throw new HttpError(400, 'BadRequest', `the body is not JSON, or is nested deeper than ${maxDepth} levels`)
    }
  }
}

async function gunzip(bytes: Buffer, maxBytes: number): Promise<Buffer> {
  const zlib = process.getBuiltinModule('node:zlib')
  return await new Promise((resolve, reject) => {
    zlib.gunzip(bytes, { maxOutputLength: maxBytes }, (error, result) => {
      if (!error) return resolve(result)
      const isTooLarge = (error as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE'
      const tooLarge = () => new HttpError(413, 'TooLarge', `the unpacked body has more than ${maxBytes} bytes`)
      reject(isTooLarge ? tooLarge() : new HttpError(400, 'BadRequest', 'the body is not valid gzip'))
    })
  })
}
