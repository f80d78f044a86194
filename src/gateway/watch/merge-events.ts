import type { SelectedValues } from '../../kubernetes/util/index.ts'

/** One event of a partition's watch, as it is passed on: the gateway does not decode objects. */
export type SourceEvent = {
  readonly revision: number
  readonly line: Uint8Array
  /** Of a shared watch, see `watch-lines.ts`. */
  readonly selected?: SelectedValues
  readonly leaving?: Uint8Array
}

/** An event, and the source that has sent it. */
export type MergedEvent = SourceEvent & { readonly source: string }

export type MergeLimits = {
  /** Of waiting events, over all sources. More end the watch: its client resumes from the last event that it got. */
  maxBufferedBytes(): number
}

/** What a source must be asked: it reports that everything up to this revision was sent, with a bookmark. */
export type ProgressRequest = { readonly source: string; readonly revision: number }

const shortenAfter = 1_024

type Source = {
  readonly waiting: MergedEvent[]
  /** First of `waiting` that is not sent. */
  next: number
  /** Every event up to this revision has arrived. */
  watermark: number
  /** The highest revision that was asked for. */
  asked: number
}

/**
 * Merges the watches of several partitions into one log (invariant 6): events leave in the order of their revisions, each once, and none before
 * every source has reported that it has nothing earlier. A k-way merge up to the lowest watermark.
 *
 * Guarantees, which the tests cite:
 * 1. The revisions of all events that were returned rise strictly.
 * 2. An event is returned when the watermark of every source has reached its revision, and never before.
 * 3. {@link watermark} never falls; every event up to it was returned or is in the next {@link take}.
 * 4. A source without events costs no request unless an event of another one waits for it.
 */
export class EventMerge {
  readonly #sources = new Map<string, Source>()
  readonly #limits: MergeLimits
  #bufferedBytes = 0
  #lastRevision: number

  /** `from`: the revision that the watch starts after, in every source or by its name. */
  constructor(sources: Iterable<string>, from: number | ReadonlyMap<string, number>, limits: MergeLimits) {
    for (const name of sources) {
      const start = typeof from === 'number' ? from : (from.get(name) ?? 0)
      this.#sources.set(name, { waiting: [], next: 0, watermark: start, asked: start })
    }
    if (this.#sources.size === 0) throw new RangeError('a merge needs at least one source')
    this.#limits = limits
    this.#lastRevision = this.watermark
  }

  /** The revision up to which every event has arrived: what a bookmark for the client may carry once {@link take} has returned them. */
  get watermark(): number {
    let lowest = Number.POSITIVE_INFINITY
    for (const { watermark } of this.#sources.values()) lowest = Math.min(lowest, watermark)
    return lowest
  }

  get isTooLarge(): boolean {
    return this.#bufferedBytes > this.#limits.maxBufferedBytes()
  }

  /** From where the watch of a source continues after its connection broke. */
  resumeFrom(source: string): number {
    return this.#of(source).watermark
  }

  /** The connection of a source is new: what it was asked before is not answered any more. */
  reopened(source: string): void {
    const state = this.#of(source)
    state.asked = state.watermark
  }

  /** An event of the source. One that it has sent before, after a connection broke, is ignored. */
  add(source: string, event: SourceEvent): void {
    const state = this.#of(source)
    if (event.revision <= state.watermark) return
    state.waiting.push({ ...event, source })
    state.watermark = event.revision
    this.#bufferedBytes += event.line.byteLength
  }

  /** A bookmark of the source: it has sent every event up to the revision. */
  advance(source: string, revision: number): void {
    const state = this.#of(source)
    state.watermark = Math.max(state.watermark, revision)
  }

  /** The events that can be sent now, in order. */
  take(): MergedEvent[] {
    const { watermark } = this
    const ready: MergedEvent[] = []
    for (;;) {
      const first = this.#first()
      if (!first || first.event.revision > watermark) break
      const { event, state } = first
      state.next++
      if (state.next === state.waiting.length || state.next === shortenAfter) {
        state.waiting.splice(0, state.next)
        state.next = 0
      }
      this.#bufferedBytes -= event.line.byteLength
      if (event.revision <= this.#lastRevision)
        throw new Error(
          `bug: revision ${event.revision} after ${this.#lastRevision}: a partition has sent an event below its watermark, or two have the same number`,
        )
      this.#lastRevision = event.revision
      ready.push(event)
    }
    return ready
  }

  /** What to ask the sources for which events wait, or which have not reached `atLeast`. One at a time per connection. */
  progressRequests(atLeast = 0): ProgressRequest[] {
    let highest = atLeast
    for (const { waiting } of this.#sources.values()) highest = Math.max(highest, waiting.at(-1)?.revision ?? 0)
    if (highest === 0) return []
    const requests: ProgressRequest[] = []
    for (const [source, state] of this.#sources) {
      // One at a time: the answer to an earlier one may suffice for the first event, and a later one asks for the rest.
      if (state.watermark >= highest || state.asked > state.watermark) continue
      state.asked = highest
      requests.push({ source, revision: highest })
    }
    return requests
  }

  #first(): { event: MergedEvent; state: Source } | undefined {
    let first: { event: MergedEvent; state: Source } | undefined
    for (const state of this.#sources.values()) {
      const event = state.waiting[state.next]
      if (event && (!first || event.revision < first.event.revision)) first = { event, state }
    }
    return first
  }

  #of(source: string): Source {
    const state = this.#sources.get(source)
    if (!state) throw new RangeError(`the merge has no source ${source}`)
    return state
  }
}
