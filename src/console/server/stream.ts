import { randomUUID } from 'node:crypto'
import type { ServerResponse } from 'node:http'
import { setImmediate } from 'node:timers/promises'
import { SentView, viewDelta } from '../projection/index.ts'
import type { StreamMessage, ViewQuery } from '../protocol/index.ts'
import type { SessionRecord } from './sessions.ts'
import { type ViewSources, versionOf, viewContent } from './view-content.ts'

/** Of a stream: a browser shows a few views in each of its tabs. */
export const maxViews = 100
/** A client that has not read so much gets nothing more until it has: what changes meanwhile is sent once. */
const maxUnsentBytes = 256 * 1024

let lastTurn: Promise<unknown> = Promise.resolve()
/** All streams compute one view in each turn of the event loop, which takes a few milliseconds: the process has other work too. */
const nextTurn = (): Promise<unknown> => (lastTurn = lastTurn.then(() => setImmediate()))

type View = {
  readonly query: ViewQuery
  readonly sent: SentView
  /** What its last content was computed from; undefined if it must be computed again. */
  version: readonly unknown[] | undefined
}

/** What one browser sees: its views, and what it has of them. It outlives its connection for a while, so that a page that reconnects gets only what has changed. */
export class Stream {
  readonly id = randomUUID()
  readonly session: SessionRecord
  readonly #sources: ViewSources
  readonly #views = new Map<string, View>()
  #response: ServerResponse | undefined
  #lastId = 0
  #isComputing = false
  /** When the connection ended; undefined while there is one. */
  detachedMs: number | undefined = performance.now()

  constructor(session: SessionRecord, sources: ViewSources) {
    this.session = session
    this.#sources = sources
  }

  get isConnected(): boolean {
    return this.#response !== undefined
  }

  /** Sends to this response from now on. @param lastId of the last message that the page has; undefined: it has nothing. */
  attach(response: ServerResponse, lastId: number | undefined): void {
    const resumed = lastId !== undefined && lastId === this.#lastId
    // It may have missed some of what was sent.
    if (!resumed) for (const view of this.#views.values()) Object.assign(view, { sent: new SentView(), version: undefined })
    this.#response?.end()
    this.#response = response
    this.detachedMs = undefined
    response.once('close', () => {
      if (this.#response !== response) return
      this.#response = undefined
      this.detachedMs = performance.now()
    })
    this.#send({ type: 'hello', stream: this.id, resumed, serverMs: this.#sources.nowMs() })
  }

  /** Replaces the views. One whose query has not changed continues. */
  setViews(queries: ReadonlyMap<string, ViewQuery>): void {
    for (const id of [...this.#views.keys()]) if (!queries.has(id)) this.#views.delete(id)
    for (const [id, query] of queries) {
      const known = this.#views.get(id)
      if (known && JSON.stringify(known.query) === JSON.stringify(query)) continue
      // The rows of the page before may be in the next one too: only the others are sent.
      const isSameTable = known?.query.kind === query.kind && !('name' in query)
      this.#views.set(id, { query, sent: isSameTable && known ? known.sent : new SentView(), version: undefined })
    }
  }

  /** Sends what has changed of the views. */
  async flush(): Promise<void> {
    const response = this.#response
    if (this.#isComputing || !response || response.writableLength > maxUnsentBytes) return
    this.#isComputing = true
    try {
      for (const [id, view] of [...this.#views]) {
        if (this.#isCurrent(view)) continue
        await nextTurn()
        if (this.#views.get(id) !== view) continue
        if (this.#response !== response || response.writableLength > maxUnsentBytes) return
        view.version = versionOf(view.query, this.#sources)
        const content = await viewContent(view.query, this.#sources)
        // Replaced or disconnected meanwhile: the next flush computes it again.
        if (this.#views.get(id) !== view) continue
        if (this.#response !== response) {
          view.version = undefined
          return
        }
        const delta = viewDelta(id, view.sent, content)
        if (delta) this.#send(delta)
      }
    } finally {
      this.#isComputing = false
    }
  }

  #isCurrent({ query, version }: View): boolean {
    const now = versionOf(query, this.#sources)
    return version?.every((part, at) => part === now[at]) === true
  }

  /** Keeps proxies from closing the connection, and shows the page that it lives. A page that misses one has missed nothing: it has no number of its own. */
  beat(): void {
    const message: StreamMessage = { type: 'beat', serverMs: this.#sources.nowMs() }
    this.#response?.write(`id: ${this.#lastId}\ndata: ${JSON.stringify(message)}\n\n`)
  }

  end(reason: string): void {
    this.#send({ type: 'signed-out', reason })
    this.#response?.end()
    this.#response = undefined
  }

  #send(message: StreamMessage): void {
    this.#response?.write(`id: ${++this.#lastId}\ndata: ${JSON.stringify(message)}\n\n`)
  }
}
