import { drained } from '../../util/index.ts'
import { TimeSlice } from '../fairness/index.ts'
import { type EntrySelection, type Kind, selectedFieldsOf } from '../registry/index.ts'
import { type StoredEntry, type StoredEvent, stringifyAsciiJson, type Table } from '../storage/index.ts'
import { eventLine, type Reply, type Representation, renderBookmark, renderEvent, renderInitial, type SentType } from '../wire/index.ts'
import { hasMoved, selectedValuesOf } from './selected-values.ts'

export type WatcherOptions = {
  kind: Kind
  table: Table
  selection: EntrySelection
  as: Representation
  response: Reply
  wantsBookmarks: boolean
  nowMs: () => number
  /** Default: always true. */
  revalidate?: Revalidate | undefined
  /** With more unsent bytes than this, the watcher is disconnected; its client resumes from its last revision (invariant 10). */
  maxBufferedBytes: number
  onClose: (watcher: Watcher) => void
  /** Of a gateway's watch: each line begins with its revision, see `http/partition-protocol.ts`. Default: an ordinary watch. */
  id?: string | undefined
  /** Of a gateway's watch: each event begins with what selectors select by, see `selected-values.ts`. Default false. */
  showsSelected?: boolean | undefined
  /** Of a gateway's watch: {@link Watcher.showMap} writes lines. Default false. */
  showsMap?: boolean | undefined
}

/**
 * Whether an open watch may continue. `credential` checks only that the credential is valid: cheap, called whenever one may have been
 * revoked. `all` also checks that its user may still watch: called from time to time.
 */
export type Revalidate = (scope: 'credential' | 'all') => boolean

const initialChunkBytes = 128 * 1024
const replayBatchSize = 64

/** One open watch: the changes of its table within its selection, in order (invariant 6). */
export class Watcher {
  readonly #options: WatcherOptions
  #isFirst = true
  /** Events since the start of the initial objects or the replay; undefined when the watch is live. */
  #buffered: StoredEvent[] | undefined
  #isClosed = false
  /** How many of the next events were committed before this watch started. */
  skippedEvents = 0
  deadlineMs = Number.POSITIVE_INFINITY
  nextBookmarkMs = Number.POSITIVE_INFINITY
  /** Its gateway waits for a bookmark of at least this revision. */
  requestedRevision: number | undefined
  nextCheckMs = Number.POSITIVE_INFINITY

  constructor(options: WatcherOptions) {
    this.#options = options
    options.response.on('close', () => this.#release())
  }

  revalidate(scope: 'credential' | 'all'): boolean {
    return this.#options.revalidate?.(scope) ?? true
  }

  get id(): string | undefined {
    return this.#options.id
  }

  get table(): Table {
    return this.#options.table
  }

  get wantsBookmarks(): boolean {
    return (this.#options.wantsBookmarks || this.id !== undefined) && this.#buffered === undefined
  }

  /**
   * Sends the initial objects, then every event since.
   * @param initialEndRevision if set, the initial objects end with the bookmark that WatchList clients wait for.
   */
  async sendInitial(entries: readonly StoredEntry[], initialEndRevision: number | undefined): Promise<void> {
    const { kind, as, response } = this.#options
    this.#buffered = []
    const slice = new TimeSlice()
    let text = ''
    for (const entry of entries) {
      text += this.#mark('0') + renderInitial(kind, entry, as, this.#isFirst, this.#options.nowMs())
      this.#isFirst = false
      if (slice.isExpired) await slice.yield()
      if (this.#isClosed) return
      if (text.length < initialChunkBytes) continue
      const isReady = response.write(text, asEncoding(as))
      text = ''
      if (!isReady) await drained(response)
      if (this.#isClosed) return
    }
    if (initialEndRevision !== undefined) text += this.#mark(`B${initialEndRevision}`) + renderBookmark(kind, initialEndRevision, as, true)
    if (text) response.write(text, asEncoding(as))
    this.#goLive()
  }

  #goLive(): void {
    const waiting = this.#buffered ?? []
    this.#buffered = undefined
    this.#send(waiting)
  }

  /** Sends past events of the table, oldest first, then every event since. */
  async replay(events: readonly StoredEvent[]): Promise<void> {
    const { response } = this.#options
    this.#buffered = []
    const slice = new TimeSlice()
    for (let at = 0; at < events.length && !this.#isClosed; at += replayBatchSize) {
      const some = events.slice(at, at + replayBatchSize)
      const chunk = this.#render(some)
      for (const event of some) event.encoded = undefined
      if (chunk) writeChunk(response, chunk)
      if (response.writableLength > initialChunkBytes) await drained(response)
      if (slice.isExpired) await slice.yield()
    }
    this.#goLive()
  }

  bookmark(revision: number): void {
    if (this.#buffered || this.#isClosed) return
    const { kind, as, response } = this.#options
    response.write(this.#mark(`B${revision}`) + renderBookmark(kind, revision, as, false), asEncoding(as))
  }

  /** What is written to the table from now on comes after this line. */
  showMap(epoch: number): void {
    if (this.#options.showsMap && !this.#isClosed) this.#options.response.write(`${this.#mark(`M${epoch}`)}{}\n`)
  }

  /** Ends the stream cleanly, after an ERROR event if there is a `status`. */
  end(status?: object): void {
    if (this.#isClosed) return
    const { response, as } = this.#options
    if (status) response.write(this.#mark('E') + eventLine('ERROR', JSON.stringify(status), as), asEncoding(as))
    this.#release()
    response.end()
  }

  /** Sends the events of its table since the last delivery. Every watcher of the table gets the same array. */
  deliver(events: readonly StoredEvent[]): void {
    const { skippedEvents } = this
    this.skippedEvents = 0
    this.#send(skippedEvents > 0 ? events.slice(skippedEvents) : events)
  }

  #send(events: readonly StoredEvent[]): void {
    if (this.#isClosed || events.length === 0) return
    const { maxBufferedBytes, response } = this.#options
    if (this.#buffered) {
      this.#buffered.push(...events)
      if (this.#buffered.length * 1_000 > maxBufferedBytes) this.#disconnect()
      return
    }
    const chunk = this.#chunkOf(events)
    if (!chunk) return
    // Only bytes unsent from earlier deliveries count: the size of this one is not the client's fault.
    if (response.writableLength > maxBufferedBytes) this.#disconnect()
    else writeChunk(response, chunk)
  }

  // Watchers of the same selection share the bytes, which are rendered, joined and framed once per commit.
  #chunkOf(events: readonly StoredEvent[]): Chunk | undefined {
    const { kind, selection, as } = this.#options
    const isShared = selection.isWhole && (as.form !== 'table' || !this.#isFirst)
    if (!isShared) return this.#render(events)
    const key = `${kind.apiVersion} ${as.key} ${selection.namespace}${this.id === undefined ? '' : ' marked'}${this.#options.showsSelected ? ' selected' : ''}`
    let chunks = sharedChunks.get(events)
    if (!chunks) {
      chunks = new Map()
      sharedChunks.set(events, chunks)
    }
    let chunk = chunks.get(key)
    if (chunk === undefined) {
      chunk = this.#render(events) ?? null
      chunks.set(key, chunk)
    }
    if (chunk) this.#isFirst = false
    return chunk ?? undefined
  }

  #render(events: readonly StoredEvent[]): Chunk | undefined {
    const { kind, table, selection, as, nowMs, showsSelected } = this.#options
    const readFields = showsSelected ? selectedFieldsOf(kind, table) : undefined
    let text = ''
    for (const event of events) {
      const type = typeFor(event, selection)
      if (!type) continue
      const line = renderEvent(kind, event, type, as, this.#isFirst, nowMs())
      if (readFields) {
        const selected = selectedValuesOf(event, readFields)
        if (hasMoved(selected)) text += `L${event.revision} ${renderEvent(kind, event, 'DELETED', as, this.#isFirst, nowMs())}`
        const values = stringifyAsciiJson(selected)
        text += `S${event.revision} ${values.length} ${values}${line}`
      } else text += this.#mark(`${event.revision}`) + line
      this.#isFirst = false
    }
    return text ? frame(text, as) : undefined
  }

  #mark(text: string): string {
    return this.id === undefined ? '' : `${text} `
  }

  #disconnect(): void {
    this.#release()
    this.#options.response.destroy()
  }

  #release(): void {
    if (this.#isClosed) return
    this.#isClosed = true
    this.#buffered = undefined
    this.#options.onClose(this)
  }
}

/** Lines of a watch, also framed as one chunk of HTTP/1.1; `body` is a part of `framed`. */
type Chunk = { readonly framed: Buffer; readonly body: Buffer }

const sharedChunks = new WeakMap<readonly StoredEvent[], Map<string, Chunk | null>>()

function frame(text: string, as: Representation): Chunk {
  const length = as.syntax === 'json' ? text.length : Buffer.byteLength(text)
  const head = `${length.toString(16)}\r\n`
  const framed = Buffer.from(`${head}${text}\r\n`, asEncoding(as))
  return { framed, body: framed.subarray(head.length, head.length + length) }
}

// One write of a shared buffer per watcher.
function writeChunk(response: Reply, { framed, body }: Chunk): void {
  if (response.writeFramed?.(framed)) return
  response.write(body)
}

/** The event type of a change for a watcher of `selection`: entering it is ADDED, leaving it is DELETED. */
function typeFor(event: StoredEvent, selection: Pick<EntrySelection, 'matches'>): SentType | undefined {
  const { type, entry, before } = event
  const wasIn = before !== undefined && selection.matches(before)
  if (type === 'DELETED') return wasIn ? 'DELETED' : undefined
  const isIn = selection.matches(entry)
  if (isIn) return wasIn ? 'MODIFIED' : 'ADDED'
  return wasIn ? 'DELETED' : undefined
}

// JSON is ASCII by construction and needs no encoding; YAML may not be.
const asEncoding = (as: Representation): 'latin1' | 'utf8' => (as.syntax === 'json' ? 'latin1' : 'utf8')
