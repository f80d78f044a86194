import { signal } from '@preact/signals'
import { apiPath } from '../../protocol/index.ts'
import { csrfHeaders, request } from '../request.ts'
import { backoffMs } from '../stream/backoff.ts'
import { LogLines } from './log-lines.ts'

export type LogState =
  | { readonly kind: 'loading' }
  /** Lines arrive as they are written. */
  | { readonly kind: 'following' }
  | { readonly kind: 'reconnecting' }
  /** Everything is here. */
  | { readonly kind: 'complete' }
  | { readonly kind: 'failed'; readonly code: number; readonly message: string }

/** A tab that has been hidden for so long does not follow: browsers have few connections for all tabs of a page. */
const hiddenMs = 10_000
/** A Run whose status has ended sends no more than what its worker has in flight. */
const lastLinesMs = 3_000

/** Reads a log until it has ended or the reader is closed, and continues where a lost connection has left it. */
export class LogReader {
  readonly lines = new LogLines()
  readonly state = signal<LogState>({ kind: 'loading' })
  /** Number of lines that have arrived. */
  readonly count = signal(0)
  readonly #path: string
  #hasEnded: boolean
  #isClosed = false
  #attempt = new AbortController()
  #wake: () => void = () => {}
  #hiding: ReturnType<typeof setTimeout> | undefined
  readonly #visibilityChanged = () => this.#setHidden()

  /** @param hasEnded whether the Run has: its log is read, and not followed. */
  constructor({ namespace, name }: { readonly namespace: string; readonly name: string }, hasEnded: boolean) {
    this.#path = `${apiPath}logs/${encodeURIComponent(namespace)}/${encodeURIComponent(name)}`
    this.#hasEnded = hasEnded
    document.addEventListener('visibilitychange', this.#visibilityChanged)
    void this.#run()
  }

  /** The Run has ended. */
  end(): void {
    if (this.#hasEnded) return
    this.#hasEnded = true
    setTimeout(() => this.reconnect(), lastLinesMs)
  }

  /** The connection may be dead: another one continues. */
  reconnect(): void {
    if (this.state.value.kind === 'following' || this.state.value.kind === 'reconnecting') this.#attempt.abort()
    this.#wake()
  }

  close(): void {
    this.#isClosed = true
    document.removeEventListener('visibilitychange', this.#visibilityChanged)
    clearTimeout(this.#hiding)
    this.#attempt.abort()
    this.#wake()
  }

  async #run(): Promise<void> {
    for (let failures = 0; !this.#isClosed; failures++) {
      const attempt = new AbortController()
      this.#attempt = attempt
      try {
        const response = await fetch(`${this.#path}?timestamps=1&offset=${this.lines.offset}${this.#hasEnded ? '' : '&follow=1'}`, {
          signal: attempt.signal,
          cache: 'no-store',
          headers: csrfHeaders(),
        })
        // A request reports that the user must sign in.
        if (response.status === 401) await request('GET', 'session')
        else if (response.status >= 400 && response.status < 500 && response.status !== 429) return await this.#fail(response)
        else if (response.ok) {
          failures = 0
          await this.#read(response)
          // A store that stops ends its responses too: the log of an active Run may continue.
          if (this.#hasEnded) return this.#complete()
        } else this.#lost()
      } catch {
        this.#lost()
      }
      if (this.#isClosed) return
      await this.#untilNextAttempt(failures)
    }
  }

  async #read(response: Response): Promise<void> {
    this.state.value = { kind: this.#hasEnded ? 'loading' : 'following' }
    const reader = (response.body as ReadableStream<Uint8Array>).getReader()
    for (;;) {
      const { done, value } = await reader.read()
      if (done) break
      this.lines.push(value)
      this.count.value = this.lines.length
    }
  }

  /** The next attempt continues, whatever the reason was. */
  #lost(): void {
    this.lines.restart()
    this.state.value = { kind: this.#hasEnded ? 'loading' : 'reconnecting' }
  }

  #complete(): void {
    this.lines.end()
    this.count.value = this.lines.length
    this.state.value = { kind: 'complete' }
  }

  async #fail(response: Response): Promise<void> {
    const { message = `the console answered with status ${response.status}` } = (await response.json().catch(() => ({}))) as {
      message?: string
    }
    this.state.value = { kind: 'failed', code: response.status, message }
  }

  async #untilNextAttempt(failures: number): Promise<void> {
    const woken = () =>
      new Promise<void>(resolve => {
        this.#wake = resolve
      })
    const timer = setTimeout(() => this.#wake(), backoffMs(failures, Math.random()))
    await woken()
    clearTimeout(timer)
    while (document.visibilityState === 'hidden' && !this.#isClosed) await woken()
  }

  #setHidden(): void {
    clearTimeout(this.#hiding)
    if (document.visibilityState === 'visible') this.#wake()
    else this.#hiding = setTimeout(() => this.state.value.kind === 'following' && this.#attempt.abort(), hiddenMs)
  }
}
