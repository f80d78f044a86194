/** From this many on, watches of one collection of one partition are shared: fewer are passed through, which costs the gateway nothing. */
const shareFrom = 4

type Forwarded = { readonly partition: string; readonly kindClass: string; count: number }

/** The open watches that are passed to one partition as they are. */
export class ForwardedWatches {
  readonly #byPath = new Map<string, Forwarded>()

  get size(): number {
    let size = 0
    for (const { count } of this.#byPath.values()) size += count
    return size
  }

  [Symbol.iterator](): IterableIterator<Readonly<Forwarded>> {
    return this.#byPath.values()
  }

  /** Whether the next watch of the collection should be shared instead. */
  shouldShare(partition: string, path: string): boolean {
    return (this.#byPath.get(keyOf(partition, path))?.count ?? 0) >= shareFrom
  }

  /** The returned function must be called when the watch has ended. */
  open(partition: string, path: string, kindClass: string): () => void {
    const key = keyOf(partition, path)
    const forwarded = this.#byPath.get(key) ?? { partition, kindClass, count: 0 }
    this.#byPath.set(key, forwarded)
    forwarded.count++
    return () => {
      if (--forwarded.count === 0) this.#byPath.delete(key)
    }
  }
}

const keyOf = (partition: string, path: string) => `${partition} ${path}`
