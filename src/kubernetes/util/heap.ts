/**
 * A binary heap. `isBefore` must be a strict order of its items; of two equal items either may come first.
 * With `tracked` the heap records the position of each item, so that {@link put} can move an item whose order changed and
 * {@link delete} can remove one, both in O(log n); an item may then be contained only once. Without it those two throw, and
 * nothing is allocated per item.
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

  /** The first item, without removing it. */
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

  /** Adds `item`, or moves it to its current position in the order. Tracked heaps only. */
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

  /** All items in order, each in O(log n). The heap must not change during the iteration. */
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
    if (!this.#positions) throw new TypeError('bug: put and delete require a heap with { tracked: true }')
    return this.#positions
  }

  #move(from: number, item: T): void {
    if (this.#up(from, item) === from) this.#down(from, item)
  }

  /** Moves `item` up from position `from`; returns its new position. */
  #up(from: number, item: T): number {
    // Local variables: the loop would read the private fields again in each step.
    const items = this.#items
    const positions = this.#positions
    const isBefore = this.#isBefore
    let at = from
    while (at > 0) {
      const parent = (at - 1) >> 1
      const above = items[parent] as T
      if (!isBefore(item, above)) break
      items[at] = above
      positions?.set(above, at)
      at = parent
    }
    items[at] = item
    positions?.set(item, at)
    return at
  }

  /** Moves `item` down from position `from`. */
  #down(from: number, item: T): void {
    const items = this.#items
    const positions = this.#positions
    const isBefore = this.#isBefore
    let at = from
    for (;;) {
      let child = 2 * at + 1
      if (child >= items.length) break
      if (child + 1 < items.length && isBefore(items[child + 1] as T, items[child] as T)) child++
      const below = items[child] as T
      if (!isBefore(below, item)) break
      items[at] = below
      positions?.set(below, at)
      at = child
    }
    items[at] = item
    positions?.set(item, at)
  }
}
