/**
 * A binary heap whose members can be taken out, or moved after their order changed, in O(log n): it knows where each is.
 * `isBefore` must be a strict total order of what is in it.
 */
export class IndexedHeap<T extends object> {
  readonly #isBefore: (a: T, b: T) => boolean
  readonly #items: T[] = []
  readonly #at = new Map<T, number>()

  constructor(isBefore: (a: T, b: T) => boolean) {
    this.#isBefore = isBefore
  }

  get size(): number {
    return this.#items.length
  }

  /** The first one, which stays. */
  peek(): T | undefined {
    return this.#items[0]
  }

  /** All of them, in no order. */
  members(): Iterable<T> {
    return this.#items
  }

  /** Adds `item`, or moves it to where it belongs now. */
  put(item: T): void {
    let at = this.#at.get(item)
    if (at === undefined) {
      at = this.#items.length
      this.#items.push(item)
      this.#at.set(item, at)
    }
    this.#down(this.#up(at))
  }

  delete(item: T): boolean {
    const at = this.#at.get(item)
    if (at === undefined) return false
    const last = this.#items.pop()!
    this.#at.delete(item)
    if (last !== item) {
      this.#items[at] = last
      this.#at.set(last, at)
      this.#down(this.#up(at))
    }
    return true
  }

  /** Everything in order, one after the other in O(log n) each; the heap must not change meanwhile. */
  *ordered(): Generator<T, void> {
    const edge = new IndexedHeap<{ at: number }>((a, b) => this.#isBefore(this.#items[a.at]!, this.#items[b.at]!))
    if (this.#items.length > 0) edge.put({ at: 0 })
    for (let next = edge.peek(); next; next = edge.peek()) {
      edge.delete(next)
      yield this.#items[next.at]!
      for (const at of [2 * next.at + 1, 2 * next.at + 2]) if (at < this.#items.length) edge.put({ at })
    }
  }

  #up(from: number): number {
    let at = from
    while (at > 0) {
      const parent = (at - 1) >> 1
      if (!this.#isBefore(this.#items[at]!, this.#items[parent]!)) break
      this.#swap(at, parent)
      at = parent
    }
    return at
  }

  #down(from: number): void {
    for (let at = from; ; ) {
      const left = 2 * at + 1
      let least = at
      if (left < this.#items.length && this.#isBefore(this.#items[left]!, this.#items[least]!)) least = left
      if (left + 1 < this.#items.length && this.#isBefore(this.#items[left + 1]!, this.#items[least]!)) least = left + 1
      if (least === at) return
      this.#swap(at, least)
      at = least
    }
  }

  #swap(a: number, b: number): void {
    const [one, other] = [this.#items[a]!, this.#items[b]!]
    this.#items[a] = other
    this.#items[b] = one
    this.#at.set(other, a)
    this.#at.set(one, b)
  }
}
