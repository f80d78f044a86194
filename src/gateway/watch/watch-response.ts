import { drained } from '../../kubernetes/util/index.ts'
import type { ClientResponse } from '../request/index.ts'

/** More unsent bytes than this make the existing objects wait for the client. */
const pauseAboveBytes = 1024 * 1024

/** The response of a watch: bounded in memory, whatever the client does (invariant 10). */
export class WatchResponse {
  readonly #response: ClientResponse
  readonly #maxBufferedBytes: () => number
  readonly #onSlow: () => void
  #isEnded = false

  /** `maxBufferedBytes`: of what the client has not read, now. `onSlow`: the response is ended because of it. */
  constructor(response: ClientResponse, maxBufferedBytes: () => number, onSlow: () => void) {
    this.#onSlow = onSlow
    this.#response = response
    this.#maxBufferedBytes = maxBufferedBytes
  }

  get isEnded(): boolean {
    return this.#isEnded || this.#response.destroyed
  }

  get hasBegun(): boolean {
    return this.#response.headersSent
  }

  begin(): void {
    if (this.#response.headersSent) return
    this.#response.writeHead(200, { 'Content-Type': 'application/json', 'Cache-Control': 'no-cache, private' })
    this.#response.flushHeaders()
  }

  /** Sends lines now. False if the client reads too slowly: then the connection is closed, and the client continues with another watch from what it has. */
  write(lines: readonly Uint8Array[]): boolean {
    if (this.isEnded) return true
    this.begin()
    // Only what is unsent from before counts: the size of these lines is not the client's fault.
    if (this.#response.writableLength > this.#maxBufferedBytes()) {
      this.#onSlow()
      this.end(true)
      return false
    }
    const chunk = chunkOf(lines)
    if (!this.#response.writeFramed?.(chunk.framed)) this.#response.write(chunk.body)
    return true
  }

  /** As {@link write}, at the speed of the client. */
  async writeSlowly(lines: readonly Uint8Array[]): Promise<void> {
    if (this.isEnded) return
    this.begin()
    this.#response.write(joined(lines))
    if (this.#response.writableLength > pauseAboveBytes) await drained(this.#response)
  }

  /** `isBroken`: the connection is closed without an end of the body. */
  end(isBroken: boolean): void {
    if (this.isEnded) return
    this.#isEnded = true
    if (isBroken) this.#response.destroy()
    else {
      this.begin()
      this.#response.end()
    }
  }
}

const joined = (lines: readonly Uint8Array[]): Uint8Array => (lines.length === 1 && lines[0] ? lines[0] : Buffer.concat(lines))

/** Lines, also framed as one chunk of HTTP/1.1; `body` is a part of `framed`. */
type Chunk = { readonly framed: Buffer; readonly body: Buffer }

let last: { readonly lines: readonly Uint8Array[]; readonly chunk: Chunk } | undefined

/** Clients of a shared watch get the same array one after another: it is joined and framed once. */
function chunkOf(lines: readonly Uint8Array[]): Chunk {
  if (last?.lines === lines) return last.chunk
  const length = lines.reduce((sum, { byteLength }) => sum + byteLength, 0)
  const head = `${length.toString(16)}\r\n`
  const framed = Buffer.concat([Buffer.from(head, 'latin1'), ...lines, lineEnd])
  const chunk = { framed, body: framed.subarray(head.length, head.length + length) }
  last = { lines, chunk }
  return chunk
}

const lineEnd = Buffer.from('\r\n', 'latin1')
