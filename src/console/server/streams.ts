import { badRequest, StatusError } from '../../kubernetes/object/index.ts'
import type { ConsoleServerOptions } from './options.ts'
import type { Call, Routes } from './route.ts'
import type { SessionAccess } from './session-access.ts'
import type { SessionRecord } from './sessions.ts'
import { maxViews, Stream } from './stream.ts'
import { validQuery } from './valid-query.ts'

/** A stream without a connection is kept for so long. */
const detachedMs = 60_000
const maxStreamsPerSession = 16

/** The streams of all browsers. */
export class Streams {
  readonly #options: Pick<ConsoleServerOptions, 'projections' | 'history' | 'onError'>
  readonly #access: SessionAccess
  readonly #streams = new Map<string, Stream>()
  readonly routes: Routes = {
    'GET stream': async call => this.#open(call),
    'PUT stream': async call => await this.#setViews(call),
  }

  constructor(options: Pick<ConsoleServerOptions, 'projections' | 'history' | 'onError'>, access: SessionAccess) {
    this.#options = options
    this.#access = access
  }

  #open({ session, query, request, response, visibility }: Call): void {
    const known = this.#streams.get(query.get('resume') ?? '')
    const lastId = Number(query.get('last') ?? request.headers['last-event-id'] ?? Number.NaN)
    let stream = known?.session === session ? known : undefined
    if (!stream) {
      const own = [...this.#streams.values()].filter(other => other.session === session)
      if (own.length >= maxStreamsPerSession)
        throw new StatusError('TooManyRequests', `this session has ${own.length} open streams: close other windows of the console`)
      const { projections, history, onError } = this.#options
      const client = () => this.#access.client(session)
      stream = new Stream(session, { projections, history, visibility, nowMs: Date.now, client, onError: error => onError(error) })
      this.#streams.set(stream.id, stream)
    }
    response.writeHead(200, {
      'Content-Type': 'text/event-stream',
      'Cache-Control': 'no-store',
      'X-Content-Type-Options': 'nosniff',
      // Proxies such as nginx must not hold events back.
      'X-Accel-Buffering': 'no',
    })
    stream.attach(response, known === stream && Number.isInteger(lastId) ? lastId : undefined)
    void stream.flush()
  }

  async #setViews({ session, path: [id = '', what], response, body }: Call): Promise<void> {
    const stream = this.#streams.get(id)
    if (what !== 'views' || stream?.session !== session) throw new StatusError('NotFound', 'this stream has ended: open another one')
    const entries = Object.entries(await body())
    if (entries.length > maxViews) throw badRequest(`a stream has at most ${maxViews} views, got ${entries.length}`)
    stream.setViews(new Map(entries.map(([name, query]) => [name, validQuery(query)])))
    response.writeHead(204).end()
    void stream.flush()
  }

  /** Sends what has changed. */
  flush(): void {
    for (const stream of this.#streams.values()) if (stream.isConnected) stream.flush().catch(error => this.#options.onError(error))
  }

  beat(): void {
    for (const stream of this.#streams.values()) stream.beat()
  }

  /** Forgets streams whose page has not come back. */
  sweep(): void {
    for (const [id, stream] of this.#streams)
      if (stream.detachedMs !== undefined && performance.now() - stream.detachedMs > detachedMs) this.#streams.delete(id)
  }

  endOf(session: SessionRecord, reason: string): void {
    for (const [id, stream] of this.#streams) {
      if (stream.session !== session) continue
      stream.end(reason)
      this.#streams.delete(id)
    }
  }
}
