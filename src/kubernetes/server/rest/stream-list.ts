import { once } from 'node:events'
import { TimeSlice } from '../fairness/index.ts'
import type { StoredEntry } from '../storage/index.ts'
import { listItem, type Reply, takesGzip } from '../wire/index.ts'
import type { Call } from './call.ts'

const gzipChunkLength = 256 * 1024
const chunkBytes = 128 * 1024
/** One chunk is filled while the other is being sent. */
const chunkCount = 2
// A chunk of HTTP/1.1 starts with its size, written with leading zeros here, and ends with a line break.
const sizeDigits = 8
const headBytes = sizeDigits + 2
const tailBytes = 2

/** The entries of a list from index `from` up to, but not including, `to`; ages in Tables are computed at `nowMs`. */
export type ListPart = { entries: readonly StoredEntry[]; from: number; to: number; nowMs: number }
/** The text before and after the items. */
export type ListFrame = { head: string; end: string }

/**
 * Sends a long list in chunks. Entries are immutable, so the list stays consistent however long the client takes. Other requests are
 * served between the chunks.
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

/** Passes each item to `put` and awaits its promise, if any; false when the client has disconnected. */
async function forEachItem(
  { target: { kind }, output: { as, response } }: Call,
  { entries, from, to, nowMs }: ListPart,
  put: (text: string, withComma: boolean) => Promise<void> | undefined,
): Promise<boolean> {
  const slice = new TimeSlice()
  for (let i = from; i < to; i++) {
    const isTaken = put(listItem(kind, entries[i]!, as, nowMs), i > from)
    if (isTaken) await isTaken
    // A short row of a Table can take long: the whole object is parsed for it.
    if (as.form !== 'object' && slice.isExpired) await slice.yield()
    if (response.destroyed) return false
  }
  return true
}

// Reuses a few buffers: a list of 100 MB leaves no garbage.
async function streamPlain(call: Call, frame: ListFrame, part: ListPart): Promise<void> {
  const chunks = new ChunkWriter(call.output.response)
  await chunks.write(frame.head)
  // Only a full chunk has to be awaited.
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
    // No chunk is released after the client has disconnected.
    response.on('close', () => this.#wake?.())
  }

  /** Writes ASCII text into the current chunk, with a comma before it if asked; false when it does not fit. */
  tryWrite(text: string, withComma: boolean): boolean {
    if (this.#at + text.length + 1 > chunkBytes - tailBytes) return false
    if (withComma) this.#chunk[this.#at++] = 0x2c
    this.#at += this.#chunk.write(text, this.#at, 'latin1')
    return true
  }

  /** Writes ASCII text of any length and waits for chunks that are still being sent. */
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

/** Waits until `sink` accepts more data or the client has disconnected. Removes its listeners, because a long list waits many times. */
async function drained(sink: NodeJS.WritableStream, response: Reply): Promise<void> {
  const over = new AbortController()
  const { signal } = over
  await Promise.race([once(sink, 'drain', { signal }), once(response, 'close', { signal })]).catch(() => undefined)
  over.abort()
}
