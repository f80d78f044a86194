import { Heap } from '../../kubernetes/util/index.ts'

type Scheduled<Event> = { readonly atMs: number; readonly order: number; readonly event: Event }

/** Future events, earliest first; events of the same time in the order in which they were added. */
export class EventQueue<Event> {
  readonly #heap = new Heap<Scheduled<Event>>((a, b) => a.atMs < b.atMs || (a.atMs === b.atMs && a.order < b.order))
  #order = 0

  get size(): number {
    return this.#heap.size
  }

  /** Time of the next event; Infinity if there is none. */
  get nextMs(): number {
    return this.#heap.peek()?.atMs ?? Number.POSITIVE_INFINITY
  }

  add(atMs: number, event: Event): void {
    this.#heap.push({ atMs, order: this.#order++, event })
  }

  pop(): Event | undefined {
    return this.#heap.pop()?.event
  }
}
