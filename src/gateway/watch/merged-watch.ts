import { randomUUID } from 'node:crypto'
import type { TransportStreamResponse } from '../../kubernetes/client/transport.ts'
import { type Partition, PartitionMovedError } from '../partition/index.ts'
import type { GatewayUser } from '../request/index.ts'
import { bookmarkForm, bookmarkLine, movedLine } from './bookmark-line.ts'
import { EventMerge, type MergedEvent } from './merge-events.ts'
import { isInitialEnd, type MarkedLine, watchLines } from './watch-lines.ts'

export type MergedWatchPart = {
  readonly partition: Partition
  /** The path of the watch in this partition: `from` undefined for the first request of a watch that begins with the objects that exist. */
  pathFrom(from: number | undefined): string
}

export type MergedWatchOptions = {
  readonly parts: readonly MergedWatchPart[]
  readonly user: GatewayUser
  readonly headers: Readonly<Record<string, string>>
  /** The version that the watch continues from; undefined: it begins with the objects that exist. */
  readonly from: number | undefined
  /** Whether the existing objects end with the bookmark that WatchList clients wait for. */
  readonly marksInitialEnd: boolean
  readonly wantsBookmarks: boolean
  maxBufferedBytes(): number
  /** Where lines go. Returns false when the client reads too slowly. */
  write(lines: readonly Uint8Array[]): boolean
  /** Where events go, instead of their lines. */
  deliver?(events: readonly MergedEvent[]): void
  /** `WatchPlan.isCurrentAt` */
  isCurrentAt(epoch: number): boolean | Promise<boolean>
  /** Called when {@link MergedWatch.watermark} may have risen, after the events up to it. */
  progressed?(): void
  /** The watch of a partition is opened again. */
  reconnected?(partition: string): void
  /** The watch has ended; the client opens another one. `isBroken`: the connection must be closed without an end of the body. */
  end(isBroken: boolean): void
  readonly log: (message: string, error?: unknown) => void
  /** How long a partition that has reported its progress may take to report it on the watch too. Default 10,000. */
  readonly silentMs?: number | undefined
}

type Source = {
  readonly part: MergedWatchPart
  readonly watchId: string
  isInitial: boolean
  failures: number
  /** The newest change of the resource that the partition has shown. */
  known: number
  /** Of the watch that is open. */
  abort: AbortController
}

const bookmarkEveryMs = 45_000
const retryMs = { initial: 50, most: 2_000 }
/** A watch that has lasted so long was no failure. */
const lastingMs = 1_000
const defaultSilentMs = 10_000

/**
 * One watch of a client over several partitions: keeps a watch of each open, and passes their events on in the order of `EventMerge`. A watch of a
 * partition that breaks is opened again where it was; until then, the events of the others wait.
 */
export class MergedWatch {
  readonly #options: MergedWatchOptions
  readonly #merge: EventMerge
  readonly #sources = new Map<string, Source>()
  readonly #abort = new AbortController()
  #initialCount: number
  /** The highest version of the existing objects: their end is reported at one that is at least that. */
  #initialVersion = 0
  #isInitialEndSent: boolean
  #bookmarkText: string | undefined
  #lastBookmark = 0
  #bookmarkTimer: NodeJS.Timeout | undefined
  /** What {@link reach} was asked for. */
  #wanted = 0
  /** The newest map that a partition knows, and whether the gateway must reach it before anything is passed on. */
  #epoch = 0
  #isHeld = false

  constructor(options: MergedWatchOptions) {
    const { parts, from, maxBufferedBytes } = options
    this.#options = options
    this.#merge = new EventMerge(
      parts.map(({ partition }) => partition.name),
      from ?? 0,
      { maxBufferedBytes },
    )
    for (const part of parts)
      this.#sources.set(part.partition.name, {
        part,
        watchId: randomUUID(),
        isInitial: from === undefined,
        failures: 0,
        known: 0,
        abort: new AbortController(),
      })
    this.#initialCount = from === undefined ? parts.length : 0
    this.#isInitialEndSent = from !== undefined || !options.marksInitialEnd
  }

  /**
   * Opens the watch of every partition. Returns the first response that is no watch, for the client, if there is one: then nothing stays open.
   * @throws {StatusError} naming a partition that does not answer.
   */
  async open(): Promise<TransportStreamResponse | undefined> {
    const sources = [...this.#sources.values()]
    const results = await Promise.allSettled(sources.map(source => this.#openSource(source)))
    const failed = results.find(result => result.status === 'rejected')
    const rejected = results.find(result => result.status === 'fulfilled' && result.value.status !== 200)
    if (failed || rejected) {
      const answer = rejected?.status === 'fulfilled' ? rejected.value : undefined
      const body = answer && (await collect(answer))
      this.close()
      if (failed?.status === 'rejected') throw failed.reason
      return body
    }
    for (const [index, source] of sources.entries()) {
      const result = results[index]
      if (result?.status === 'fulfilled') void this.#run(source, result.value)
    }
    if (this.#options.wantsBookmarks) this.#bookmarkTimer = setInterval(() => this.#sendBookmark(), bookmarkEveryMs / 4).unref()
    return undefined
  }

  /** Every event up to it was passed on. */
  get watermark(): number {
    return this.#merge.watermark
  }

  /** Asks the partitions that have not reached the version to report it. */
  reach(version: number): void {
    this.#wanted = Math.max(this.#wanted, version)
    this.#settle()
  }

  close(): void {
    clearInterval(this.#bookmarkTimer)
    this.#abort.abort()
    for (const { abort } of this.#sources.values()) abort.abort()
  }

  async #openSource(source: Source): Promise<TransportStreamResponse> {
    const { part, watchId, isInitial } = source
    const { user, headers } = this.#options
    const path = part.pathFrom(isInitial ? undefined : this.#merge.resumeFrom(part.partition.name))
    source.abort = new AbortController()
    const all = { ...headers, ...marks(watchId), ...(source.known > 0 && { 'x-oarlock-watch-known': String(source.known) }) }
    const { signal } = source.abort
    if (this.#abort.signal.aborted) source.abort.abort()
    return await part.partition.stream({ method: 'GET', path, user, headers: all, signal })
  }

  async #run(source: Source, first: TransportStreamResponse): Promise<void> {
    const { name } = source.part.partition
    let response: TransportStreamResponse | undefined = first
    while (!this.#abort.signal.aborted) {
      try {
        response ??= await this.#openSource(source)
        if (isTemporary(response.status)) {
          for await (const _ of response.body);
          throw new Error(`it answers ${response.status}`)
        }
        // The user may have lost the right: the next watch of the client gets the reason.
        if (response.status !== 200) {
          this.#end(false)
          return
        }
        source.known = Math.max(source.known, Number(response.headers['x-oarlock-watch-known'] ?? 0) || 0)
        // What was asked on the connection before has no answer.
        this.#merge.reopened(name)
        this.#settle()
        const openedMs = performance.now()
        for await (const lines of watchLines(response.body)) {
          source.failures = 0
          for (const line of lines) this.#receive(source, line)
          this.#settle()
        }
        if (performance.now() - openedMs > lastingMs) source.failures = 0
      } catch (error) {
        // Once for each time that it is away.
        const isExpected = this.#abort.signal.aborted || error instanceof PartitionMovedError
        if (!isExpected && source.failures === 0) this.#options.log(`the watch of partition ${name} is opened again`, error)
      }
      response = undefined
      // What a partition has sent of existing objects cannot be continued.
      if (source.isInitial) this.#end(true)
      if (this.#abort.signal.aborted) return
      this.#merge.reopened(name)
      this.#options.reconnected?.(name)
      await delay(Math.min(retryMs.most, retryMs.initial * 2 ** source.failures++), this.#abort.signal)
    }
  }

  #receive(source: Source, line: MarkedLine): void {
    if (this.#abort.signal.aborted) return
    const { name } = source.part.partition
    switch (line.kind) {
      case 'initial':
        this.#write([line.line])
        return
      case 'event':
        source.known = Math.max(source.known, line.revision)
        this.#merge.add(name, line)
        return
      case 'map':
        this.#mapChanged(line.revision)
        return
      case 'error':
        this.#settle()
        this.#write([line.line])
        this.#end(false)
        return
      case 'bookmark':
        this.#bookmarkText ??= bookmarkForm(line.line)
        this.#merge.advance(name, line.revision)
        if (!source.isInitial || !isInitialEnd(line)) return
        source.isInitial = false
        this.#initialCount--
        this.#initialVersion = Math.max(this.#initialVersion, line.revision)
    }
  }

  /**
   * A partition knows of changes of the map: what it and others have written since may be more than these partitions have. Nothing is passed on before this
   * gateway knows of them too, so that the version of a client is never later than an object that it misses.
   */
  #mapChanged(epoch: number): void {
    if (epoch <= this.#epoch) return
    this.#epoch = epoch
    const isCurrent = this.#options.isCurrentAt(epoch)
    if (isCurrent === true) return
    this.#isHeld = true
    Promise.resolve(isCurrent).then(
      is => {
        if (this.#abort.signal.aborted || epoch < this.#epoch) return
        this.#isHeld = false
        if (is) this.#settle()
        else {
          this.#write([movedLine])
          this.#end(false)
        }
      },
      error => {
        if (this.#abort.signal.aborted) return
        this.#options.log('a watch is ended, because partitions know more than this gateway', error)
        this.#end(true)
      },
    )
  }

  /** Sends what can be sent, and asks the partitions that others wait for. */
  #settle(): void {
    if (this.#abort.signal.aborted || this.#isHeld) return
    const ready = this.#merge.take()
    if (ready.length > 0 && this.#options.deliver) this.#options.deliver(ready)
    else if (ready.length > 0) this.#write(ready.map(({ line }) => line))
    if (this.#abort.signal.aborted) return
    this.#options.progressed?.()
    if (this.#merge.isTooLarge) {
      this.#options.log('the watch is ended, because a partition has not answered for so long that too many events of the others wait')
      this.#end(true)
      return
    }
    const awaitsInitialEnd = this.#initialCount === 0 && !this.#isInitialEndSent
    const initialVersion = awaitsInitialEnd ? this.#initialVersion : 0
    if (awaitsInitialEnd && this.#merge.watermark >= initialVersion) {
      this.#isInitialEndSent = true
      this.#sendBookmark(true)
    }
    for (const { source, revision } of this.#merge.progressRequests(Math.max(initialVersion, this.#wanted))) this.#ask(source, revision)
  }

  #ask(name: string, revision: number): void {
    const source = this.#sources.get(name) as Source
    const { signal } = this.#abort
    const { abort } = source
    source.part.partition.progress(this.#options.user, revision, [source.watchId], signal).then(
      () => this.#expectProgress(source, revision, abort),
      error => {
        if (signal.aborted) return
        // Without a watch of it, that was reported already.
        if (source.failures === 0) this.#options.log(`partition ${name} does not report its progress`, error)
        setTimeout(() => {
          this.#merge.reopened(name)
          this.#settle()
        }, retryMs.most).unref()
      },
    )
  }

  /** A connection may be dead without an error, if its other end has vanished: nothing is ever sent on it. */
  #expectProgress({ part }: Source, revision: number, abort: AbortController): void {
    const { name } = part.partition
    if (this.#merge.resumeFrom(name) >= revision || abort.signal.aborted) return
    const timer = setTimeout(() => {
      if (this.#merge.resumeFrom(name) >= revision || abort.signal.aborted) return
      abort.abort(new Error(`nothing has arrived on the watch of partition ${name}, which has reported its progress`))
    }, this.#options.silentMs ?? defaultSilentMs)
    timer.unref()
  }

  #sendBookmark(isInitialEnd = false): void {
    const { watermark } = this.#merge
    if (
      this.#isHeld ||
      this.#initialCount > 0 ||
      !this.#isInitialEndSent ||
      this.#bookmarkText === undefined ||
      watermark <= this.#lastBookmark
    )
      return
    this.#lastBookmark = watermark
    this.#write([bookmarkLine(this.#bookmarkText, watermark, isInitialEnd)])
  }

  #write(lines: readonly Uint8Array[]): void {
    if (!this.#options.write(lines)) this.#end(true)
  }

  #end(isBroken: boolean): void {
    if (this.#abort.signal.aborted) return
    this.close()
    this.#options.end(isBroken)
  }
}

/** Of a watch of a partition: its lines have marks (`watch-lines.ts`). */
export const marks = (id: string) => ({ 'x-oarlock-watch': id, 'x-oarlock-watch-map': 'true' })

/** A partition that starts, ends or is busy: the same request succeeds later. */
const isTemporary = (status: number) => status === 429 || status >= 500

/** The response with its body, so that its connection is free. */
export async function collect(response: TransportStreamResponse): Promise<TransportStreamResponse> {
  const chunks: Buffer[] = []
  for await (const chunk of response.body) chunks.push(chunk)
  return {
    ...response,
    body: (async function* () {
      yield* chunks
    })(),
  }
}

function delay(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise(resolve => {
    const timer = setTimeout(done, ms)
    function done() {
      clearTimeout(timer)
      signal.removeEventListener('abort', done)
      resolve()
    }
    signal.addEventListener('abort', done)
  })
}
