/**
 * A binary heap. `isBefore` must be a strict order of what is in it; of two equal items either may come first.
 * With `tracked` the heap records where each item is, so that {@link put} can move one whose order changed and {@link delete} can
 * remove one, both in O(log n); then an item may be in it only once. Without it those two throw, and nothing is allocated per item.
 */
export class Heap<T> {
  readonly #isBefore: (a: T, b: T) => boolean
  readonly #positions: Map<T, number> | undefined
  #items: T[] = []

  /** @param options.tracked Default: false. */
  constructor(isBefore: (a: T, b: T) => boolean, { tracked = false }: { tracked?: boolean } = {}) {
    this.#isBefore = isBefore
    this.#positions = tracked ? new Map() : undefined
  }

  get size(): number {
    return this.#items.length
  }

  /** The first item, which stays. */
  peek(): T | undefined {
    return this.#items[0]
  }

  /** All items, in no order. */
  members(): Iterable<T> {
    return this.#items
  }

  /** Adds an item that is not in the heap. */
  push(item: T): void {
    this.#items.push(item)
    this.#up(this.#items.length - 1, item)
  }

  /** Removes and returns the first item. */
  pop(): T | undefined {
    const items = this.#items
    const first = items[0]
    const last = items.pop()
    if (first === undefined || last === undefined) return undefined
    this.#positions?.delete(first)
    if (items.length > 0) this.#down(0, last)
    return first
  }

  /** Adds `item`, or moves it to where it belongs now. Tracked heaps only. */
  put(item: T): void {
    const position = this.#tracked().get(item)
    if (position === undefined) this.push(item)
    else this.#move(position, item)
  }

  /** Removes `item`; false if it is not in the heap. Tracked heaps only. */
  delete(item: T): boolean {
    const positions = this.#tracked()
    const position = positions.get(item)
    if (position === undefined) return false
    const last = this.#items.pop() as T
    positions.delete(item)
    if (last !== item) this.#move(position, last)
    return true
  }

  /** All items in order, each found in O(log n); the heap must not change meanwhile. */
  *ordered(): Generator<T, void> {
    const items = this.#items
    const edge = new Heap<number>((a, b) => this.#isBefore(items[a] as T, items[b] as T))
    if (items.length > 0) edge.push(0)
    for (let next = edge.pop(); next !== undefined; next = edge.pop()) {
      yield items[next] as T
      for (const child of [2 * next + 1, 2 * next + 2]) if (child < items.length) edge.push(child)
    }
  }

  /** Keeps only the items for which `isLive` is true. */
  compact(isLive: (item: T) => boolean): void {
    const live = this.#items.filter(isLive)
    this.clear()
    for (const item of live) this.push(item)
  }

  clear(): void {
    this.#items = []
    this.#positions?.clear()
  }

  #tracked(): Map<T, number> {
    if (!this.#positions) throw new TypeError('bug: put and delete need a heap that was made with { tracked: true }')
    return this.#positions
  }

  #move(from: number, item: T): void {
    if (this.#up(from, item) === from) this.#down(from, item)
  }

  /** Writes `item` at `from` or above, where it belongs; returns where. */
  #up(from: number, item: T): number {
    const items = this.#items
    let at = from
    while (at > 0) {
      const parent = (at - 1) >> 1
      const above = items[parent] as T
      if (!this.#isBefore(item, above)) break
      this.#set(at, above)
      at = parent
    }
    this.#set(at, item)
    return at
  }

  /** Writes `item` at `from` or below, where it belongs. */
  #down(from: number, item: T): void {
    const items = this.#items
    let at = from
    for (;;) {
      let child = 2 * at + 1
      if (child >= items.length) break
      if (child + 1 < items.length && this.#isBefore(items[child + 1] as T, items[child] as T)) child++
      const below = items[child] as T
      if (!this.#isBefore(below, item)) break
      this.#set(at, below)
      at = child
    }
    this.#set(at, item)
  }

  #set(at: number, item: T): void {
    this.#items[at] = item
    this.#positions?.set(item, at)
  }
}
