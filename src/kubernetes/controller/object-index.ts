/** One index of a cache: for each indexed value, the keys of the objects that have it. */
export class ObjectIndex<T> {
  readonly #valuesOf: (object: T) => readonly string[]
  readonly #keys = new Map<string, Set<string>>()

  constructor(valuesOf: (object: T) => readonly string[]) {
    this.#valuesOf = valuesOf
  }

  /** Moves `key` from the values of `old` to those of `next`; undefined means that the object does not exist. */
  replace(key: string, old: T | undefined, next: T | undefined): void {
    const before = old === undefined ? [] : this.#valuesOf(old)
    const after = next === undefined ? [] : this.#valuesOf(next)
    if (before.length === 1 && after.length === 1 && before[0] === after[0]) return
    for (const value of before) {
      if (after.includes(value)) continue
      const keys = this.#keys.get(value)
      keys?.delete(key)
      if (keys?.size === 0) this.#keys.delete(value)
    }
    for (const value of after) {
      const keys = this.#keys.get(value)
      if (keys) keys.add(key)
      else this.#keys.set(value, new Set([key]))
    }
  }

  keys(value: string): Iterable<string> {
    return this.#keys.get(value) ?? []
  }
}
