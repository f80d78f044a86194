import type { Agent } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { jitteredDelayMs, parseServerAddress } from '../../kubernetes/util/index.ts'
import { HttpSender } from '../http/index.ts'

export type LogClientOptions = {
  /** `https://host:port`, `http://host:port` or `unix:///path`. */
  baseUrl: string
  /** PEM of the CA of the server's certificate. Default: the system's CAs. */
  caCertificate?: string
  /** Shared connections to the store. Default: one of its own, with `caCertificate`. */
  agent?: Agent
  token: string | (() => string)
  namespace: string
  run: string
  /** How long a line waits for others to be sent with it. Default 200. */
  batchMs?: number
  /** From this size on a batch is sent without waiting. Default 64 KiB. */
  batchBytes?: number
  /** Maximum bytes of lines that wait for the store; the oldest are dropped, and a mark is added. Default 8 MiB, and {@link maxPendingLines}. */
  maxPendingBytes?: number
  /** Called when sending fails; it is retried. */
  onError?: (error: Error) => void
}

const maxLineChars = 256 * 1024
const maxBatchBytes = 512 * 1024
/** An empty line takes 100 times its size in memory. */
const maxPendingLines = 100_000
const removed = Buffer.alloc(0)

/** 50–100 ms after the first failure, then 100–200 ms, up to 2.5–5 s. */
const retryBackoff = { minMs: 50, maxMs: 5_000 }

/**
 * The worker's client of a Run's log. `append` never waits and never throws, so that the log does not delay the engine.
 * Batches carry a byte offset, so one whose response was lost is not stored twice; after a restart on either side the client queries the offset.
 */
export class LogClient {
  readonly #options: Required<Pick<LogClientOptions, 'batchMs' | 'batchBytes' | 'maxPendingBytes'>> & LogClientOptions
  readonly #sender: HttpSender
  readonly #url: string
  /** Those before `#first` were sent or dropped: removing each from the array would move all others. */
  #pending: Buffer[] = []
  #first = 0
  #pendingBytes = 0
  /** Removed from `#pending`, and possibly stored already. Its first byte has the offset `#offset`. */
  #batch: Buffer | undefined
  #offset: number | undefined
  #droppedLines = 0
  #droppedBytes = 0
  #isFull = false
  /** Dropped because the log is full. */
  #unsentBytes = 0
  #sending: Promise<void> | undefined
  #timer: NodeJS.Timeout | undefined
  #isEnded = false
  readonly #stop = new AbortController()
  /** Aborted by `close` to end a backoff immediately. */
  #closing = new AbortController()

  constructor(options: LogClientOptions) {
    const { namespace, run, caCertificate, agent } = options
    const { baseUrl, socketPath } = parseServerAddress(options.baseUrl)
    this.#options = { batchMs: 200, batchBytes: 64 * 1024, maxPendingBytes: 8 * 1024 * 1024, ...options }
    this.#sender = new HttpSender({ connections: 1, caCertificate, socketPath, agent })
    this.#url = `${baseUrl}/logs/${encodeURIComponent(namespace)}/${encodeURIComponent(run)}`
  }

  /** The log has reached its limit: what is appended is dropped. */
  get isFull(): boolean {
    return this.#isFull
  }

  /** Counts bytes that the caller drops because the log is full. */
  drop(bytes: number): void {
    this.#unsentBytes += bytes
  }

  /** Adds a line without its newline. Secrets must be masked already. */
  append(line: string): void {
    if (this.#isEnded) return
    if (this.#isFull) {
      this.drop(Buffer.byteLength(line) + 1)
      return
    }
    const bytes = Buffer.from(`${line.length > maxLineChars ? line.slice(0, maxLineChars) : line}\n`)
    this.#pending.push(bytes)
    this.#pendingBytes += bytes.byteLength
    this.#dropOldest()
    if (this.#sending !== undefined) return
    if (this.#pendingBytes >= this.#options.batchBytes) this.#send()
    else this.#timer ??= setTimeout(() => this.#send(), this.#options.batchMs)
  }

  /**
   * Sends the pending lines and ends the log, within `timeoutMs` (default 5,000). Never rejects.
   * `flushed` is true when all lines were stored. With `end: false` the log is not ended.
   */
  async close(options: { timeoutMs?: number; end?: boolean } = {}): Promise<{ flushed: boolean }> {
    const { timeoutMs = 5_000, end = true } = options
    const timeout = setTimeout(() => this.#stop.abort(), timeoutMs)
    this.#closing.abort()
    try {
      while (!this.#stop.signal.aborted && !this.#isEnded && (this.#sending !== undefined || this.#hasPending())) {
        if (this.#sending === undefined) this.#send()
        await this.#sending
      }
      const flushed = !this.#hasPending() && this.#droppedBytes === 0
      const dropped = this.#unsentBytes > 0 ? `&dropped=${this.#unsentBytes}` : ''
      while (end && !this.#isEnded && !this.#stop.signal.aborted) {
        const response = await this.#post(`?end=1${dropped}`, undefined).catch((error: Error) => error)
        if (!(response instanceof Error) && response.status < 500 && response.status !== 429) break
        await sleep(200, undefined, { signal: this.#stop.signal }).catch(() => undefined)
      }
      return { flushed }
    } finally {
      clearTimeout(timeout)
      clearTimeout(this.#timer)
      this.#isEnded = true
      this.#pending = []
      this.#first = 0
      this.#sender.destroy()
    }
  }

  #hasPending(): boolean {
    return this.#batch !== undefined || this.#pending.length > this.#first
  }

  #dropOldest(): void {
    const isOver = () => this.#pendingBytes > this.#options.maxPendingBytes || this.#pending.length - this.#first > maxPendingLines
    while (isOver() && this.#first < this.#pending.length - 1) {
      const bytes = this.#pending[this.#first]?.byteLength ?? 0
      this.#removeFirst(1)
      this.#pendingBytes -= bytes
      this.#droppedBytes += bytes
      this.#droppedLines++
    }
  }

  #removeFirst(count: number): void {
    for (let end = this.#first + count; this.#first < end; this.#first++) this.#pending[this.#first] = removed
    if (this.#first < 1_000 || this.#first * 2 < this.#pending.length) return
    this.#pending.splice(0, this.#first)
    this.#first = 0
  }

  #send(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    this.#sending ??= this.#sendAll().finally(() => {
      this.#sending = undefined
      // Lines that were added while the last batch was sent.
      if (this.#hasPending() && !this.#isEnded && !this.#stop.signal.aborted)
        this.#timer ??= setTimeout(() => this.#send(), this.#options.batchMs)
    })
  }

  /** Sends at least the lines that are pending now, and stops when fewer bytes than a batch are pending. */
  async #sendAll(): Promise<void> {
    let failures = 0
    do {
      this.#batch ??= this.#nextBatch()
      try {
        await this.#sendBatch(this.#batch)
        failures = 0
      } catch (error) {
        if (this.#isEnded || this.#stop.signal.aborted) return
        this.#options.onError?.(error as Error)
        await this.#backOff(++failures)
      }
      if (this.#isEnded || this.#stop.signal.aborted) return
    } while (this.#batch !== undefined || this.#pendingBytes >= this.#options.batchBytes)
  }

  async #backOff(failures: number): Promise<void> {
    const delayMs = jitteredDelayMs(failures, retryBackoff, Math.random())
    // While closing, the delay is short.
    const signal = this.#closing.signal.aborted ? this.#stop.signal : AbortSignal.any([this.#stop.signal, this.#closing.signal])
    await sleep(this.#closing.signal.aborted ? Math.min(delayMs, 200) : delayMs, undefined, { signal }).catch(() => undefined)
  }

  #nextBatch(): Buffer {
    const parts: Buffer[] = []
    if (this.#droppedLines > 0) {
      parts.push(
        Buffer.from(
          `[oarlock] ${this.#droppedLines} lines (${this.#droppedBytes} bytes) were dropped here: the log store did not respond\n`,
        ),
      )
      this.#droppedLines = 0
      this.#droppedBytes = 0
    }
    let bytes = 0
    let count = 0
    for (let at = this.#first; at < this.#pending.length; at++) {
      const part = this.#pending[at] as Buffer
      if (count > 0 && bytes + part.byteLength > maxBatchBytes) break
      parts.push(part)
      bytes += part.byteLength
      count++
    }
    this.#removeFirst(count)
    this.#pendingBytes -= bytes
    return Buffer.concat(parts)
  }

  async #sendBatch(batch: Buffer): Promise<void> {
    if (this.#offset === undefined) {
      const first = await this.#post('', undefined)
      if (first.status !== 200) throw new Error(`the log store responded ${first.status}: ${first.message}`)
      this.#offset = first.offset ?? 0
    }
    const { status, code, offset, expected, message, full } = await this.#post(`?offset=${this.#offset}`, batch)
    if (status === 200) {
      this.#offset = offset ?? this.#offset + batch.byteLength
      this.#batch = undefined
      if (full) this.#dropPending()
      return
    }
    if (code === 'Ended') {
      this.#isEnded = true
      this.#batch = undefined
      this.#options.onError?.(new Error('the log has ended; the remaining lines are dropped'))
      return
    }
    if (code === 'Gap' && expected !== undefined) {
      const missing = this.#offset - expected
      this.#batch = Buffer.concat([Buffer.from(`[oarlock] the log store lost ${missing} bytes of this log here\n`), batch])
      this.#offset = expected
      return
    }
    throw new Error(`the log store responded ${status}: ${message}`)
  }

  #dropPending(): void {
    this.#isFull = true
    this.#unsentBytes += this.#pendingBytes + this.#droppedBytes
    this.#pending = []
    this.#first = 0
    this.#pendingBytes = 0
    this.#droppedLines = 0
    this.#droppedBytes = 0
  }

  async #post(
    query: string,
    body: Buffer | undefined,
  ): Promise<{ status: number; code?: string; message?: string; offset?: number; expected?: number; full?: boolean }> {
    const { token } = this.#options
    const { status, body: content } = await this.#sender.send({
      ...{ method: 'POST', url: `${this.#url}${query}`, body, signal: this.#stop.signal, idleTimeoutMs: 15_000 },
      headers: { authorization: `Bearer ${typeof token === 'string' ? token : token()}`, 'content-type': 'application/octet-stream' },
    })
    const text = content.toString('utf8')
    try {
      const { error, ...rest } = JSON.parse(text) as {
        error?: { code: string; message: string }
        offset?: number
        expected?: number
        full?: boolean
      }
      return { status, ...error, ...rest }
    } catch {
      return { status, message: text.slice(0, 200) }
    }
  }
}
