/** What happens when, the earliest first; of one moment in the order in which it was put. A binary heap in three arrays. */
export class EventHeap<Event> {
  readonly #times: number[] = []
  readonly #orders: number[] = []
  readonly #events: Event[] = []
  #order = 0

  get size(): number {
    return this.#times.length
  }

  /** When the next one happens; Infinity when there is none. */
  get nextMs(): number {
    return this.#times[0] ?? Number.POSITIVE_INFINITY
  }

  put(atMs: number, event: Event): void {
    const order = this.#order++
    let at = this.#times.length
    while (at > 0) {
      const parent = (at - 1) >> 1
      // What comes later has the higher order, so only an earlier time lets it pass.
      if (this.#times[parent]! <= atMs) break
      this.#set(at, this.#times[parent]!, this.#orders[parent]!, this.#events[parent]!)
      at = parent
    }
    this.#set(at, atMs, order, event)
  }

  take(): Event | undefined {
    const first = this.#events[0]
    const atMs = this.#times.pop()
    const order = this.#orders.pop()
    const event = this.#events.pop()
    if (atMs === undefined || order === undefined || event === undefined) return undefined
    const size = this.#times.length
    if (size === 0) return first
    let at = 0
    for (;;) {
      let child = 2 * at + 1
      if (child >= size) break
      if (child + 1 < size && this.#isBefore(child + 1, this.#times[child]!, this.#orders[child]!)) child++
      if (!this.#isBefore(child, atMs, order)) break
      this.#set(at, this.#times[child]!, this.#orders[child]!, this.#events[child]!)
      at = child
    }
    this.#set(at, atMs, order, event)
    return first
  }

  #isBefore(index: number, atMs: number, order: number): boolean {
    const own = this.#times[index]!
    return own < atMs || (own === atMs && this.#orders[index]! < order)
  }

  #set(at: number, atMs: number, order: number, event: Event): void {
    this.#times[at] = atMs
    this.#orders[at] = order
    this.#events[at] = event
  }
}
