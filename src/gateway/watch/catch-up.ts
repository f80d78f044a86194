import type { TransportStreamResponse } from '../../kubernetes/client/transport.ts'
import type { GatewayUser } from '../request/index.ts'
import { bookmarkForm, movedLine } from './bookmark-line.ts'
import { EventMerge } from './merge-events.ts'
import { collect, type MergedWatchPart, marks } from './merged-watch.ts'
import { type MarkedLine, watchLines } from './watch-lines.ts'

export type CatchUpOptions = {
  readonly parts: readonly MergedWatchPart[]
  readonly user: GatewayUser
  readonly headers: Readonly<Record<string, string>>
  /** The version that the client has; undefined: it has nothing. */
  readonly from: number | undefined
  maxBufferedBytes(): number
  readonly signal: AbortSignal
  /** `WatchPlan.isCurrentAt` */
  isCurrentAt(epoch: number): boolean | Promise<boolean>
  /** Where lines go, in the order of the calls. Resolves when more can be sent: so nothing piles up before a client that reads slowly. */
  write(lines: readonly Uint8Array[]): Promise<void>
}

/** `ended`: a partition has sent an error, which was written, such as 410. */
export type CatchUpResult = { readonly kind: 'current' | 'ended' } | { readonly kind: 'rejected'; readonly answer: TransportStreamResponse }

/**
 * Brings a client to the present with the rights of its user, so that it can go on with a shared watch: the objects that exist, or the events since its
 * version. Each partition decides whether the user may watch, and what the selectors mean.
 */
export class CatchUp {
  readonly #options: CatchUpOptions
  readonly #watermarks = new Map<string, number>()
  #isInitial: boolean
  #bookmarks: string | undefined

  constructor(options: CatchUpOptions) {
    this.#options = options
    this.#isInitial = options.from === undefined
    for (const { partition } of options.parts) this.#watermarks.set(partition.name, options.from ?? 0)
  }

  /** By partition: the client has every event of it up to this version. */
  get watermarks(): ReadonlyMap<string, number> {
    return this.#watermarks
  }

  /** What bookmarks look like; known after the first {@link round}. */
  get bookmarks(): string | undefined {
    return this.#bookmarks
  }

  /**
   * Sends what has happened until now. What is sent again and again becomes less.
   * @throws {StatusError} or {Error} if a partition does not answer, or breaks off.
   */
  async round(): Promise<CatchUpResult> {
    const { parts, user, headers, maxBufferedBytes } = this.#options
    const abort = new AbortController()
    const signal = AbortSignal.any([abort.signal, this.#options.signal])
    const opening = parts.map(({ partition, pathFrom }) =>
      partition.stream({
        ...{ method: 'GET', path: pathFrom(this.#isInitial ? undefined : this.#watermarks.get(partition.name)), user, signal },
        headers: { ...headers, ...marks(partition.name), 'x-oarlock-watch-end': 'current' },
      }),
    )
    try {
      const responses = await Promise.all(opening)
      const rejected = responses.find(({ status }) => status !== 200)
      if (rejected) return { kind: 'rejected', answer: await collect(rejected) }
      const merge = new EventMerge(this.#watermarks.keys(), this.#watermarks, { maxBufferedBytes })
      const read = new ReadParts(this.#options, merge)
      const ends = await Promise.all(parts.map(({ partition }, index) => read.read(partition.name, responses[index]?.body ?? none())))
      if (read.isEnded) return { kind: 'ended' }
      this.#bookmarks ??= read.bookmarks
      for (const [index, { partition }] of parts.entries()) {
        const { name } = partition
        const end = ends[index]
        if (end === undefined) throw new Error(`partition ${name} has ended a watch before it was current`)
        // What the merge still holds comes again, from the shared watch.
        const had = this.#isInitial ? end : (this.#watermarks.get(name) ?? 0)
        this.#watermarks.set(name, Math.max(had, merge.watermark))
      }
      this.#isInitial = false
      return { kind: 'current' }
    } finally {
      abort.abort()
      for (const each of opening) each.catch(() => {})
    }
  }
}

/** The lines of one round. */
class ReadParts {
  readonly #options: CatchUpOptions
  readonly #merge: EventMerge
  #waiting: (() => void)[] = []
  /** The parts that may still send something. */
  readonly #reading: Set<string>
  bookmarks: string | undefined
  isEnded = false
  /** A part has ended before it was current. */
  #isOver = false
  /** Whether the collection is still in these partitions, by the newest map that one of them knows. */
  #isCurrent: Promise<boolean> = Promise.resolve(true)
  #epoch = 0

  constructor(options: CatchUpOptions, merge: EventMerge) {
    this.#options = options
    this.#merge = merge
    this.#reading = new Set(options.parts.map(({ partition }) => partition.name))
  }

  /** Returns the version of the bookmark with which the part has ended: of the first one, if it is that of the existing objects. */
  async read(name: string, body: AsyncIterable<Uint8Array>): Promise<number | undefined> {
    let end: number | undefined
    try {
      for await (const lines of watchLines(body)) {
        const out: Uint8Array[] = []
        for (const line of lines) end = this.#receive(name, line, out) ?? end
        if (!(await this.#isCurrent) && !this.isEnded) {
          this.isEnded = true
          out.push(movedLine)
        }
        if (!this.isEnded) for (const event of this.#merge.take()) out.push(event.line)
        this.#wake()
        if (out.length > 0) await this.#options.write(out)
        if (this.isEnded) return undefined
        // The others are still on their way: what they send may have to be sent first.
        while (this.#mustWait(name)) await new Promise<void>(resolve => this.#waiting.push(resolve))
      }
      return end
    } finally {
      // No part may wait for this one any longer.
      this.#isOver ||= end === undefined
      this.#reading.delete(name)
      this.#wake()
    }
  }

  /** Only for a part that is behind: what it sends is all that can make the merge smaller. */
  #mustWait(name: string): boolean {
    if (!this.#merge.isTooLarge || this.#isOver) return false
    const reached = this.#merge.resumeFrom(name)
    return [...this.#reading].some(other => this.#merge.resumeFrom(other) < reached)
  }

  #receive(name: string, line: MarkedLine, out: Uint8Array[]): number | undefined {
    switch (line.kind) {
      case 'initial':
        out.push(line.line)
        return undefined
      case 'event':
        this.#merge.add(name, line)
        return undefined
      case 'bookmark':
        this.bookmarks ??= bookmarkForm(line.line)
        this.#merge.advance(name, line.revision)
        return line.revision
      case 'map':
        if (line.revision > this.#epoch) {
          this.#epoch = line.revision
          const is = this.#options.isCurrentAt(line.revision)
          if (is !== true) this.#isCurrent = Promise.resolve(is)
        }
        return undefined
      case 'error':
        this.isEnded = true
        out.push(line.line)
        return undefined
      case 'leaving':
        return undefined
    }
  }

  #wake(): void {
    const waiting = this.#waiting
    this.#waiting = []
    for (const wake of waiting) wake()
  }
}

async function* none(): AsyncGenerator<Uint8Array> {}
