/** A value and the instant it is due. */
export type Due<T> = { atMs: number; value: T }

/** A binary heap by due time. Values cannot be taken out early: the owner marks what is stale and skips it. */
export class DelayHeap<T> {
  #items: Due<T>[] = []

  get size(): number {
    return this.#items.length
  }

  peek(): Due<T> | undefined {
    return this.#items[0]
  }

  push(item: Due<T>): void {
    const items = this.#items
    let index = items.length
    items.push(item)
    while (index > 0) {
      const parent = (index - 1) >> 1
      const above = items[parent] as Due<T>
      if (above.atMs <= item.atMs) break
      items[index] = above
      index = parent
    }
    items[index] = item
  }

  pop(): Due<T> | undefined {
    const items = this.#items
    const top = items[0]
    const last = items.pop()
    if (top === undefined || last === undefined || items.length === 0) return top
    let index = 0
    for (;;) {
      let child = index * 2 + 1
      if (child >= items.length) break
      if (child + 1 < items.length && (items[child + 1] as Due<T>).atMs < (items[child] as Due<T>).atMs) child++
      if ((items[child] as Due<T>).atMs >= last.atMs) break
      items[index] = items[child] as Due<T>
      index = child
    }
    items[index] = last
    return top
  }

  /** Keeps only the items that `isLive`. */
  compact(isLive: (item: Due<T>) => boolean): void {
    const live = this.#items.filter(isLive)
    this.#items = []
    for (const item of live) this.push(item)
  }

  clear(): void {
    this.#items = []
  }
}
