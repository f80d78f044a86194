import { apiPath, type StreamMessage, type ViewQuery } from '../../protocol/index.ts'
import { csrfHeaders, RequestError, request } from '../request.ts'
import { backoffMs } from './backoff.ts'
import { takeEvents } from './events.ts'

/** Where a stream was left, so that another connection or tab continues it. */
export type Position = { readonly stream: string; readonly last: number }

export type Connection = {
  readonly isLive: boolean
  /** When the last message arrived. */
  readonly heardMs: number
}

export type ConnectionEvents = {
  received(message: StreamMessage, position: Position): void
  changed(connection: Connection): void
}

/** The server writes at least every 5 s. */
const silenceMs = 20_000
/** Changes of views that come together, such as those of a scroll, are one request. */
const viewsDelayMs = 30

/** The connection of this browser to its stream: it reconnects until it is closed or the session has ended. */
export class StreamConnection {
  readonly #events: ConnectionEvents
  #position: Position | undefined
  #views: Readonly<Record<string, ViewQuery>> = {}
  #attempt = new AbortController()
  #isClosed = false
  #isOpen = false
  #heardMs = Date.now()
  #silence: ReturnType<typeof setTimeout> | undefined
  #sending: ReturnType<typeof setTimeout> | undefined
  #isSending = false
  #wake: () => void = () => {}
  readonly #online = () => this.#wake()

  constructor(position: Position | undefined, events: ConnectionEvents) {
    this.#position = position
    this.#events = events
    window.addEventListener('online', this.#online)
    void this.#run()
  }

  /** Replaces the views that the server sends. */
  setViews(views: Readonly<Record<string, ViewQuery>>): void {
    this.#views = views
    if (this.#isOpen) this.#sendViewsSoon()
  }

  close(): void {
    this.#isClosed = true
    this.#attempt.abort()
    this.#wake()
    clearTimeout(this.#sending)
    window.removeEventListener('online', this.#online)
  }

  async #run(): Promise<void> {
    for (let failures = 0; !this.#isClosed; failures++) {
      const attempt = new AbortController()
      this.#attempt = attempt
      try {
        const response = await this.#open(attempt.signal)
        if (response) {
          await this.#read(response, () => {
            failures = 0
          })
        }
      } catch {
        // The next attempt follows, whatever the reason was.
      }
      clearTimeout(this.#silence)
      this.#isOpen = false
      if (this.#isClosed) return
      this.#events.changed({ isLive: false, heardMs: this.#heardMs })
      await new Promise<void>(resolve => {
        const timer = setTimeout(resolve, backoffMs(failures, Math.random()))
        this.#wake = () => {
          clearTimeout(timer)
          resolve()
        }
      })
    }
  }

  async #open(signal: AbortSignal): Promise<Response | undefined> {
    const query = this.#position ? `?${new URLSearchParams({ resume: this.#position.stream, last: String(this.#position.last) })}` : ''
    this.#expectBytes()
    const response = await fetch(`${apiPath}stream${query}`, {
      signal,
      cache: 'no-store',
      headers: { accept: 'text/event-stream', ...csrfHeaders() },
    })
    if (response.ok) return response
    // A request reports why, and that the user must sign in if that is the reason.
    if (response.status === 401) await request('GET', 'session')
    return undefined
  }

  async #read(response: Response, opened: () => void): Promise<void> {
    const reader = (response.body as ReadableStream<Uint8Array>).pipeThrough(
      new TextDecoderStream() as ReadableWritablePair<string, Uint8Array>,
    )
    let rest = ''
    for await (const text of reader) {
      this.#expectBytes()
      rest = takeEvents(rest + text, ({ id, data }) => {
        if (data === undefined) return
        const message = JSON.parse(data) as StreamMessage
        if (message.type === 'hello') {
          opened()
          this.#opened(message.stream, id)
        } else if (this.#position) this.#position = { stream: this.#position.stream, last: id }
        if (message.type === 'beat') this.#events.changed({ isLive: true, heardMs: this.#heardMs })
        if (message.type === 'signed-out') this.close()
        if (this.#position) this.#events.received(message, this.#position)
      })
    }
  }

  #opened(stream: string, last: number): void {
    this.#position = { stream, last }
    this.#isOpen = true
    this.#events.changed({ isLive: true, heardMs: this.#heardMs })
    void this.#sendViews()
  }

  #expectBytes(): void {
    this.#heardMs = Date.now()
    clearTimeout(this.#silence)
    this.#silence = setTimeout(() => this.#attempt.abort(), silenceMs)
  }

  #sendViewsSoon(): void {
    this.#sending ??= setTimeout(() => {
      this.#sending = undefined
      void this.#sendViews()
    }, viewsDelayMs)
  }

  async #sendViews(): Promise<void> {
    if (this.#isSending) return this.#sendViewsSoon()
    const { stream } = this.#position ?? {}
    if (!this.#isOpen || stream === undefined) return
    this.#isSending = true
    try {
      await request('PUT', `stream/${stream}/views`, this.#views)
    } catch (error) {
      const code = error instanceof RequestError ? error.code : 0
      // The server no longer has the stream, or does not answer: the next connection sends the views again.
      if (code === 404) this.#position = undefined
      if (code === 404 || code === 0) this.#attempt.abort()
      else console.error(error)
    } finally {
      this.#isSending = false
    }
  }
}
