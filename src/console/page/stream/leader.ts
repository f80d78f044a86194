import { apiPath, type StreamMessage } from '../../protocol/index.ts'
import { RequestError, request } from '../request.ts'
import { reconnectDelayMs } from './backoff.ts'
import type { Connection, LeaderMessage, ViewQueries } from './messages.ts'
import { ViewState } from './view-state.ts'

/** Changes of views within this time are one request. */
const collectMs = 15

/**
 * The stream of a browser: connects, names the views of all tabs, and emits what arrives. It keeps every view, so that a tab that opens one that
 * another tab shows has it immediately.
 * Invariant: `#states` has every view that the server knows; a view leaves it only with the request that names the others.
 */
export class StreamLeader {
  readonly #emit: (message: LeaderMessage) => void
  readonly #tabs = new Map<string, ViewQueries>()
  #states = new Map<string, ViewState>()
  #connection: Connection = { state: 'connecting', offsetMs: 0 }
  #source: EventSource | undefined
  #stream: string | undefined
  #lastId = ''
  #attempt = 0
  #reconnectTimer: ReturnType<typeof setTimeout> | undefined
  #sendTimer: ReturnType<typeof setTimeout> | undefined
  #isSending = false
  #isChanged = false
  #isClosed = false

  constructor(emit: (message: LeaderMessage) => void) {
    this.#emit = emit
    this.#connect()
  }

  want(tab: string, views: ViewQueries): void {
    const before = this.#tabs.get(tab) ?? {}
    this.#tabs.set(tab, views)
    for (const id of Object.keys(views)) {
      const state = this.#states.get(id)
      if (!state) this.#states.set(id, new ViewState())
      const delta = before[id] === undefined ? state?.snapshot(id) : undefined
      if (delta) this.#emit({ type: 'delta', delta, tab })
    }
    this.#sendSoon()
  }

  leave(tab: string): void {
    if (this.#tabs.delete(tab)) this.#sendSoon()
  }

  reportConnection(): void {
    this.#emit({ type: 'connection', connection: this.#connection })
  }

  /** Connects now if it waits to. */
  wake(): void {
    if (this.#source === undefined && !this.#isClosed) this.#connect()
  }

  close(): void {
    this.#isClosed = true
    this.#source?.close()
    clearTimeout(this.#reconnectTimer)
    clearTimeout(this.#sendTimer)
  }

  #connect(): void {
    clearTimeout(this.#reconnectTimer)
    const resume = this.#stream === undefined ? '' : `?${new URLSearchParams({ resume: this.#stream, last: this.#lastId })}`
    const source = new EventSource(`${apiPath}stream${resume}`)
    this.#source = source
    source.onmessage = ({ data, lastEventId }) => {
      this.#lastId = lastEventId
      this.#receive(JSON.parse(data as string) as StreamMessage)
    }
    source.onerror = () => this.#reconnect()
  }

  #reconnect(): void {
    this.#source?.close()
    this.#source = undefined
    if (this.#isClosed) return
    this.#setConnection({ ...this.#connection, state: 'reconnecting' })
    // An EventSource does not report the status: the session may have ended.
    if (this.#attempt === 0) request('GET', 'session').catch((error: unknown) => this.#checkSession(error))
    this.#reconnectTimer = setTimeout(() => this.#connect(), reconnectDelayMs(this.#attempt++, Math.random()))
  }

  #checkSession(error: unknown): void {
    if (error instanceof RequestError && error.code === 401) this.#end(error.message)
  }

  #end(reason: string): void {
    this.close()
    this.#emit({ type: 'signed-out', reason })
  }

  #receive(message: StreamMessage): void {
    const nowMs = Date.now()
    if (message.type === 'signed-out') {
      this.#end(message.reason)
      return
    }
    if (message.type === 'view') {
      this.#connection = { ...this.#connection, lastMs: nowMs }
      this.#states.get(message.id)?.apply(message)
      this.#emit({ type: 'delta', delta: message })
      return
    }
    this.#attempt = 0
    this.#stream = message.stream
    if (!message.resumed) this.#states = new Map([...this.#states.keys()].map(id => [id, new ViewState()]))
    this.#setConnection({ state: 'live', lastMs: nowMs, offsetMs: message.serverMs - nowMs })
    this.#sendSoon()
  }

  #setConnection(connection: Connection): void {
    this.#connection = connection
    this.reportConnection()
  }

  #sendSoon(): void {
    this.#isChanged = true
    this.#sendTimer ??= setTimeout(() => {
      this.#sendTimer = undefined
      void this.#send()
    }, collectMs)
  }

  /** One request at a time: the last one that arrives must be the newest. */
  async #send(): Promise<void> {
    const stream = this.#stream
    if (this.#isSending || this.#isClosed || stream === undefined || this.#connection.state !== 'live') return
    this.#isSending = true
    this.#isChanged = false
    const views: ViewQueries = Object.assign({}, ...this.#tabs.values())
    for (const id of this.#states.keys()) if (views[id] === undefined) this.#states.delete(id)
    try {
      await request('PUT', `stream/${stream}/views`, views)
    } catch (error) {
      // The stream has ended on the server, or is about to be found broken: it is opened again, and sends the views then.
      if (stream === this.#stream && error instanceof RequestError && error.code !== 401) {
        if (error.code === 404) this.#stream = undefined
        this.#reconnect()
      }
    }
    this.#isSending = false
    if (this.#isChanged) this.#sendSoon()
  }
}
