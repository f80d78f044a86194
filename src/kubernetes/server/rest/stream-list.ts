import { once } from 'node:events'
import { TimeSlice } from '../fairness/index.ts'
import type { Entry } from '../storage/index.ts'
import { listItem, type Reply, takesGzip } from '../wire/index.ts'
import type { Call } from './call.ts'

const gzipChunkLength = 256 * 1024
const chunkBytes = 128 * 1024
/** One is filled while the other is on its way. */
const chunkCount = 2
// The size of a chunk of HTTP/1.1 in front of it, with leading zeros, and the line end behind it.
const sizeDigits = 8
const headBytes = sizeDigits + 2
const tailBytes = 2

/** The entries of a list from index `from` until before `to`; ages in tables are counted at `nowMs`. */
export type ListPart = { entries: readonly Entry[]; from: number; to: number; nowMs: number }
/** The text before the items, and the one behind them. */
export type ListFrame = { head: string; end: string }

/**
 * Sends a long list piece by piece. Entries never change, so it stays consistent however long the client takes; other requests get
 * their turn between the pieces.
 */
export async function streamList(call: Call, frame: ListFrame, part: ListPart): Promise<void> {
  const { response, as } = call.output
  const isGzip = takesGzip(call.output.acceptEncoding)
  response.writeHead(200, {
    'Content-Type': as.contentType,
    'Cache-Control': 'no-cache, private',
    ...(isGzip && { 'Content-Encoding': 'gzip', Vary: 'Accept-Encoding' }),
  })
  if (isGzip) await streamGzip(call, frame, part)
  else await streamPlain(call, frame, part)
}

/** Gives `put` one item after the other and waits for what it promises; false when the client is gone. */
async function forEachItem(
  { target: { kind }, output: { as, response } }: Call,
  { entries, from, to, nowMs }: ListPart,
  put: (text: string, withComma: boolean) => Promise<void> | undefined,
): Promise<boolean> {
  const pace = new TimeSlice()
  for (let i = from; i < to; i++) {
    const isTaken = put(listItem(kind, entries[i]!, as, nowMs), i > from)
    if (isTaken) await isTaken
    // Little may come of much: a row of a table takes the whole object to be parsed.
    if (as.form !== 'object' && pace.isExpired) await pace.yield()
    if (response.destroyed) return false
  }
  return true
}

// The same few chunks over and over: a list of 100 MB leaves nothing behind for the garbage collector.
async function streamPlain(call: Call, frame: ListFrame, part: ListPart): Promise<void> {
  const chunks = new ChunkWriter(call.output.response)
  await chunks.write(frame.head)
  // Only a full chunk has to be waited for.
  const put = (text: string, withComma: boolean) =>
    chunks.tryWrite(text, withComma) ? undefined : chunks.write(withComma ? `,${text}` : text)
  if (!(await forEachItem(call, part, put))) return
  await chunks.write(frame.end)
  chunks.flush()
  call.output.response.end()
}

class ChunkWriter {
  readonly #response: Reply
  readonly #free: Buffer[] = []
  #allocated = 0
  #chunk: Buffer
  #at = headBytes
  #wake: (() => void) | undefined

  constructor(response: Reply) {
    this.#response = response
    this.#chunk = this.#allocate()
    // Nothing comes back from a client that is gone.
    response.on('close', () => this.#wake?.())
  }

  /** Takes ASCII that fits into the chunk at hand, with a comma before it; false when it does not fit. */
  tryWrite(text: string, withComma: boolean): boolean {
    if (this.#at + text.length + 1 > chunkBytes - tailBytes) return false
    if (withComma) this.#chunk[this.#at++] = 0x2c
    this.#at += this.#chunk.write(text, this.#at, 'latin1')
    return true
  }

  /** Takes ASCII of any length and waits for chunks that are still on their way. */
  async write(text: string): Promise<void> {
    for (let at = 0; at < text.length; ) {
      if (this.#at === chunkBytes - tailBytes) {
        this.flush()
        await this.#next()
        if (this.#response.destroyed) return
      }
      const part =
        at === 0 && text.length <= chunkBytes - tailBytes - this.#at ? text : text.slice(at, at + chunkBytes - tailBytes - this.#at)
      this.#at += this.#chunk.write(part, this.#at, 'latin1')
      at += part.length
    }
  }

  flush(): void {
    const length = this.#at - headBytes
    if (length === 0) return
    const chunk = this.#chunk
    const end = this.#at
    const done = () => {
      this.#free.push(chunk)
      this.#wake?.()
    }
    chunk.write(`${length.toString(16).padStart(sizeDigits, '0')}\r\n`, 0, 'latin1')
    chunk.write('\r\n', end, 'latin1')
    if (this.#response.writeFramed?.(chunk.subarray(0, end + tailBytes), done)) return
    this.#response.write(chunk.subarray(headBytes, end), done)
  }

  async #next(): Promise<void> {
    this.#at = headBytes
    while (this.#free.length === 0 && this.#allocated >= chunkCount && !this.#response.destroyed) {
      await new Promise<void>(resolve => {
        this.#wake = resolve
      })
      this.#wake = undefined
    }
    this.#chunk = this.#free.pop() ?? this.#allocate()
    await new Promise(setImmediate)
  }

  #allocate(): Buffer {
    this.#allocated++
    return Buffer.allocUnsafeSlow(chunkBytes)
  }
}

async function streamGzip(call: Call, frame: ListFrame, part: ListPart): Promise<void> {
  const { response } = call.output
  const gzip = process.getBuiltinModule('node:zlib').createGzip({ level: 1 })
  gzip.pipe(response)
  response.on('close', () => gzip.destroy())
  gzip.on('error', () => response.destroy())
  let chunk = frame.head
  const send = async () => {
    const isReady = gzip.write(chunk, 'latin1')
    chunk = ''
    if (isReady) await new Promise(setImmediate)
    else await drained(gzip, response)
  }
  const put = (text: string, withComma: boolean) => {
    if (withComma) chunk += ','
    chunk += text
    return chunk.length < gzipChunkLength ? undefined : send()
  }
  if (await forEachItem(call, part, put)) gzip.end(chunk + frame.end, 'latin1')
}

/** Waits until `sink` takes more, or the client is gone. The loser's listeners are removed: a long list waits many times. */
async function drained(sink: NodeJS.WritableStream, response: Reply): Promise<void> {
  const over = new AbortController()
  const { signal } = over
  await Promise.race([once(sink, 'drain', { signal }), once(response, 'close', { signal })]).catch(() => undefined)
  over.abort()
}
