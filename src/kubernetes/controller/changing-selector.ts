/** A label selector that may change while caches use it. */
export class ChangingSelector {
  readonly #listeners = new Set<() => void>()
  #value: string | undefined

  /** @param value Default: not known yet; the caches stay empty until it is. An empty text selects everything. */
  constructor(value?: string) {
    this.#value = value
  }

  get value(): string | undefined {
    return this.#value
  }

  /** The caches drop what it does not select, and are filled with the rest. */
  set(value: string): void {
    if (value === this.#value) return
    this.#value = value
    for (const listener of this.#listeners) listener()
  }

  /** Calls `listener` at every change; returns a function that removes it. */
  onChange(listener: () => void): () => void {
    this.#listeners.add(listener)
    return () => void this.#listeners.delete(listener)
  }
}
