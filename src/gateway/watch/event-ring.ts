import type { SharedEvent } from './select-event.ts'

export type RingLimits = { readonly maxEvents: number; readonly maxBytes: number }

const shortenAfter = 1_024

/** The last events of a shared watch: a client that was at one of their versions continues from here. Full, it forgets the oldest (invariant 10). */
export class EventRing {
  readonly #limits: RingLimits
  #events: SharedEvent[] = []
  /** First of `#events` that is not forgotten. */
  #first = 0
  #bytes = 0
  #floor: number

  /** `from`: the revision that the watch began after. */
  constructor(from: number, limits: RingLimits) {
    this.#floor = from
    this.#limits = limits
  }

  /** Every event after this revision is here. */
  get floor(): number {
    return this.#floor
  }

  get bytes(): number {
    return this.#bytes
  }

  get size(): number {
    return this.#events.length - this.#first
  }

  push(event: SharedEvent): void {
    this.#events.push(event)
    this.#bytes += bytesOf(event)
    while (this.size > this.#limits.maxEvents || (this.#bytes > this.#limits.maxBytes && this.size > 0)) this.#forget()
    if (this.#first < shortenAfter || this.#first * 2 < this.#events.length) return
    this.#events = this.#events.slice(this.#first)
    this.#first = 0
  }

  /** The events after `revision`, in order; undefined if some of them were forgotten. */
  since(revision: number): readonly SharedEvent[] | undefined {
    if (revision < this.#floor) return undefined
    let low = this.#first
    let high = this.#events.length
    while (low < high) {
      const middle = (low + high) >>> 1
      if ((this.#events[middle] as SharedEvent).revision <= revision) low = middle + 1
      else high = middle
    }
    return this.#events.slice(low)
  }

  #forget(): void {
    const event = this.#events[this.#first] as SharedEvent
    // What was forgotten must not stay in memory until the array is shortened.
    this.#events[this.#first++] = undefined as unknown as SharedEvent
    this.#bytes -= bytesOf(event)
    this.#floor = event.revision
  }
}

const bytesOf = ({ line, leaving }: SharedEvent) => line.byteLength + (leaving?.byteLength ?? 0)
