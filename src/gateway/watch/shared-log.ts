import { EventRing, type RingLimits } from './event-ring.ts'
import { beforeOf, type SharedEvent, selectEvent } from './select-event.ts'
import { fieldValue, type WatchSelection } from './watch-selection.ts'

/** A client of a shared watch. */
export type Subscriber = {
  readonly selection: WatchSelection
  /** By source: the client has every event of it up to this revision. */
  readonly from: ReadonlyMap<string, number>
  /** Called with lines in order, each once, and never again after {@link SharedLog.remove}. Must not throw. */
  deliver(lines: readonly Uint8Array[]): void
}

type Member = { readonly subscriber: Subscriber; lines: Uint8Array[]; readonly everythingFrom: number }

/**
 * The log of a watch that clients share, and who reads it (invariant 6 for each of them):
 * 1. A client gets the events of its selection after the versions that it had, each once, in the order of their revisions.
 * 2. Who cannot get all of them, because some were forgotten, is not added.
 * 3. An event costs work for the clients that it may concern: those whose selection has its value of a field, and those that select by nothing else.
 * Pure: events go in, lines go to the subscribers in the same call.
 */
export class SharedLog {
  readonly #ring: EventRing
  readonly #members = new Map<Subscriber, Member>()
  /** Of everything: they share the bytes. */
  readonly #whole = new Set<Member>()
  /** With a selection that has no key. */
  readonly #unkeyed = new Set<Member>()
  readonly #byKey = new Map<string, Map<string, Set<Member>>>()

  constructor(from: number, limits: RingLimits) {
    this.#ring = new EventRing(from, limits)
  }

  get floor(): number {
    return this.#ring.floor
  }

  get bytes(): number {
    return this.#ring.bytes
  }

  get size(): number {
    return this.#members.size
  }

  get subscribers(): IterableIterator<Subscriber> {
    return this.#members.keys()
  }

  /**
   * Adds a client, and delivers the events that it does not have. False if some of them were forgotten: then it is not added.
   * @throws {UnknownField}
   */
  add(subscriber: Subscriber): boolean {
    const { from, selection } = subscriber
    const versions = [...from.values()]
    const missed = this.#ring.since(Math.min(...versions))
    if (!missed) return false
    const lines: Uint8Array[] = []
    for (const event of missed) {
      const line = isAfter(event, subscriber) ? selectEvent(event, selection) : undefined
      if (line) lines.push(line)
    }
    const member: Member = { subscriber, lines: [], everythingFrom: Math.max(...versions) }
    this.#members.set(subscriber, member)
    this.#setOf(selection).add(member)
    if (lines.length > 0) subscriber.deliver(lines)
    return true
  }

  remove(subscriber: Subscriber): void {
    const member = this.#members.get(subscriber)
    if (!member) return
    this.#members.delete(subscriber)
    const set = this.#setOf(subscriber.selection)
    set.delete(member)
    const { key } = subscriber.selection
    if (set.size > 0 || !key || set === this.#whole) return
    const values = this.#byKey.get(key.field)
    values?.delete(key.value)
    if (values?.size === 0) this.#byKey.delete(key.field)
  }

  /**
   * The next events, in order.
   * @throws {UnknownField}
   */
  push(events: readonly SharedEvent[]): void {
    const [first] = events
    if (!first) return
    for (const event of events) this.#ring.push(event)
    const concerned = new Set<Member>()
    for (const event of events) this.#select(event, concerned)
    // A subscriber may be removed by the delivery to another one.
    for (const member of concerned) {
      const { lines } = member
      member.lines = []
      if (this.#members.has(member.subscriber)) member.subscriber.deliver(lines)
    }
    if (this.#whole.size === 0) return
    const all = events.map(({ line }) => line)
    for (const member of [...this.#whole]) {
      const { subscriber } = member
      if (!this.#members.has(subscriber)) continue
      if (first.revision > member.everythingFrom) subscriber.deliver(all)
      else {
        const later = events.filter(event => isAfter(event, subscriber)).map(({ line }) => line)
        if (later.length > 0) subscriber.deliver(later)
      }
    }
  }

  #select(event: SharedEvent, concerned: Set<Member>): void {
    const { selected } = event
    const { after } = selected
    const before = beforeOf(selected)
    const consider = (member: Member) => {
      const line = isAfter(event, member.subscriber) ? selectEvent(event, member.subscriber.selection) : undefined
      if (!line) return
      member.lines.push(line)
      concerned.add(member)
    }
    for (const member of this.#unkeyed) consider(member)
    for (const [field, values] of this.#byKey) {
      const now = after && fieldValue(selected, after, field)
      const then = before === after ? now : before && fieldValue(selected, before, field)
      for (const member of (now !== undefined && values.get(now)) || []) consider(member)
      if (then !== now) for (const member of (then !== undefined && values.get(then)) || []) consider(member)
    }
  }

  #setOf({ isWhole, key }: WatchSelection): Set<Member> {
    if (isWhole) return this.#whole
    if (!key) return this.#unkeyed
    let values = this.#byKey.get(key.field)
    if (!values) {
      values = new Map()
      this.#byKey.set(key.field, values)
    }
    let set = values.get(key.value)
    if (!set) {
      set = new Set()
      values.set(key.value, set)
    }
    return set
  }
}

const isAfter = ({ source, revision }: SharedEvent, { from }: Subscriber) => revision > (from.get(source) ?? Number.POSITIVE_INFINITY)
