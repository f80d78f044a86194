import type { Agent } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { HttpSender } from '../http/index.ts'

export type LogClientOptions = {
  /** `https://host:port` or `http://host:port`. */
  baseUrl: string
  /** PEM of the CA that signed the server's certificate. Default: the system's. */
  caCertificate?: string
  /** Connections to the store that are shared with others. Default: one of its own, with `caCertificate`. */
  agent?: Agent
  token: string | (() => string)
  namespace: string
  run: string
  /** A line waits at most this long for others. Default 200. */
  batchMs?: number
  /** So many bytes are sent at once without waiting. Default 64 KiB. */
  batchBytes?: number
  /** Lines waiting for a store that does not answer; the oldest are dropped with a mark. Default 8 MiB. */
  maxPendingBytes?: number
  /** Told when the store does not take the log; it is tried again. */
  onError?: (error: Error) => void
}

const maxLineChars = 256 * 1024
const maxBatchBytes = 512 * 1024

/**
 * The worker's way to a Run's log. `append` never waits and never throws: an engine is not held up by its log.
 * Batches are numbered by byte offset, so one whose answer was lost is not stored twice; after a restart on either side the client asks where to go on.
 */
export class LogClient {
  readonly #options: Required<Pick<LogClientOptions, 'batchMs' | 'batchBytes' | 'maxPendingBytes'>> & LogClientOptions
  readonly #sender: HttpSender
  readonly #url: string
  #waiting: Buffer[] = []
  #waitingBytes = 0
  /** Taken from `#waiting`, and perhaps stored already. Its first byte has the offset `#offset`. */
  #batch: Buffer | undefined
  #offset: number | undefined
  #droppedLines = 0
  #droppedBytes = 0
  #sending: Promise<void> | undefined
  #timer: NodeJS.Timeout | undefined
  #isOver = false
  readonly #stop = new AbortController()
  /** Aborted by `close` to end a backoff at once. */
  #hurry = new AbortController()

  constructor(options: LogClientOptions) {
    const { baseUrl, namespace, run, caCertificate, agent } = options
    this.#options = { batchMs: 200, batchBytes: 64 * 1024, maxPendingBytes: 8 * 1024 * 1024, ...options }
    this.#sender = new HttpSender({ connections: 1, caCertificate, agent })
    this.#url = `${baseUrl.replace(/\/+$/, '')}/logs/${encodeURIComponent(namespace)}/${encodeURIComponent(run)}`
  }

  /** Adds a line, given without its newline. Mask it before. */
  append(line: string): void {
    if (this.#isOver) return
    const bytes = Buffer.from(`${line.length > maxLineChars ? line.slice(0, maxLineChars) : line}\n`)
    this.#waiting.push(bytes)
    this.#waitingBytes += bytes.byteLength
    this.#dropOldest()
    if (this.#sending !== undefined) return
    if (this.#waitingBytes >= this.#options.batchBytes) this.#send()
    else this.#timer ??= setTimeout(() => this.#send(), this.#options.batchMs)
  }

  /**
   * Sends what is left and ends the log, within `timeoutMs` (default 5,000). Never rejects.
   * `flushed` says whether all of it arrived. With `end: false` somebody else will end the log.
   */
  async close(options: { timeoutMs?: number; end?: boolean } = {}): Promise<{ flushed: boolean }> {
    const { timeoutMs = 5_000, end = true } = options
    const late = setTimeout(() => this.#stop.abort(), timeoutMs)
    this.#hurry.abort()
    try {
      while (!this.#stop.signal.aborted && !this.#isOver && (this.#sending !== undefined || this.#hasMore())) {
        if (this.#sending === undefined) this.#send()
        await this.#sending
      }
      const flushed = !this.#hasMore() && this.#droppedBytes === 0
      while (end && !this.#isOver && !this.#stop.signal.aborted) {
        const answer = await this.#post('?end=1', undefined).catch((error: Error) => error)
        if (!(answer instanceof Error) && answer.status < 500 && answer.status !== 429) break
        await sleep(200, undefined, { signal: this.#stop.signal }).catch(() => undefined)
      }
      return { flushed }
    } finally {
      clearTimeout(late)
      clearTimeout(this.#timer)
      this.#isOver = true
      this.#waiting = []
      this.#sender.destroy()
    }
  }

  #hasMore(): boolean {
    return this.#batch !== undefined || this.#waiting.length > 0
  }

  #dropOldest(): void {
    let drop = 0
    while (this.#waitingBytes > this.#options.maxPendingBytes && drop < this.#waiting.length - 1) {
      const bytes = this.#waiting[drop++]?.byteLength ?? 0
      this.#waitingBytes -= bytes
      this.#droppedBytes += bytes
      this.#droppedLines++
    }
    if (drop > 0) this.#waiting.splice(0, drop)
  }

  #send(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    this.#sending ??= this.#sendAll().finally(() => {
      this.#sending = undefined
      // Lines that came while the last batch was on its way.
      if (this.#hasMore() && !this.#isOver && !this.#stop.signal.aborted)
        this.#timer ??= setTimeout(() => this.#send(), this.#options.batchMs)
    })
  }

  /** Sends at least what waits now, then stops once less than a batch waits. */
  async #sendAll(): Promise<void> {
    let failures = 0
    do {
      this.#batch ??= this.#takeBatch()
      try {
        await this.#sendBatch(this.#batch)
        failures = 0
      } catch (error) {
        if (this.#isOver || this.#stop.signal.aborted) return
        this.#options.onError?.(error as Error)
        await this.#backOff(failures++)
      }
      if (this.#isOver || this.#stop.signal.aborted) return
    } while (this.#batch !== undefined || this.#waitingBytes >= this.#options.batchBytes)
  }

  async #backOff(failures: number): Promise<void> {
    const waitMs = Math.min(100 * 2 ** failures, 5_000) * (0.5 + Math.random() / 2)
    // Once it is closing, a short wait is enough.
    const signal = this.#hurry.signal.aborted ? this.#stop.signal : AbortSignal.any([this.#stop.signal, this.#hurry.signal])
    await sleep(this.#hurry.signal.aborted ? Math.min(waitMs, 200) : waitMs, undefined, { signal }).catch(() => undefined)
  }

  #takeBatch(): Buffer {
    const parts: Buffer[] = []
    if (this.#droppedLines > 0) {
      parts.push(
        Buffer.from(
          `[oarlock] ${this.#droppedLines} lines (${this.#droppedBytes} bytes) were dropped here: the log store did not answer\n`,
        ),
      )
      this.#droppedLines = 0
      this.#droppedBytes = 0
    }
    let bytes = 0
    let count = 0
    for (const part of this.#waiting) {
      if (count > 0 && bytes + part.byteLength > maxBatchBytes) break
      parts.push(part)
      bytes += part.byteLength
      count++
    }
    this.#waiting.splice(0, count)
    this.#waitingBytes -= bytes
    return Buffer.concat(parts)
  }

  async #sendBatch(batch: Buffer): Promise<void> {
    if (this.#offset === undefined) {
      const first = await this.#post('', undefined)
      if (first.status !== 200) throw new Error(`the log store answered ${first.status}: ${first.message}`)
      this.#offset = first.offset ?? 0
    }
    const { status, code, offset, expected, message } = await this.#post(`?offset=${this.#offset}`, batch)
    if (status === 200) {
      this.#offset = offset ?? this.#offset + batch.byteLength
      this.#batch = undefined
      return
    }
    if (code === 'Ended') {
      this.#isOver = true
      this.#batch = undefined
      this.#options.onError?.(new Error('the log has ended, what was to be added is dropped'))
      return
    }
    if (code === 'Gap' && expected !== undefined) {
      const missing = this.#offset - expected
      this.#batch = Buffer.concat([Buffer.from(`[oarlock] the log store lost ${missing} bytes of this log here\n`), batch])
      this.#offset = expected
      return
    }
    throw new Error(`the log store answered ${status}: ${message}`)
  }

  async #post(
    query: string,
    body: Buffer | undefined,
  ): Promise<{ status: number; code?: string; message?: string; offset?: number; expected?: number }> {
    const { token } = this.#options
    const { status, body: answer } = await this.#sender.send({
      ...{ method: 'POST', url: `${this.#url}${query}`, body, signal: this.#stop.signal, idleTimeoutMs: 15_000 },
      headers: { authorization: `Bearer ${typeof token === 'string' ? token : token()}`, 'content-type': 'application/octet-stream' },
    })
    const text = answer.toString('utf8')
    try {
      const { error, ...rest } = JSON.parse(text) as { error?: { code: string; message: string }; offset?: number; expected?: number }
      return { status, ...error, ...rest }
    } catch {
      return { status, message: text.slice(0, 200) }
    }
  }
}
