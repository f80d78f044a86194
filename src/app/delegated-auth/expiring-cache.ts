export type ExpiringCacheOptions = {
  /** The oldest entry is dropped beyond it (invariant 10). */
  maxEntries: number
  /** A monotonic clock in milliseconds; default `performance.now`. */
  nowMs?: (() => number) | undefined
}

type Entry<Value> = { readonly value: Promise<Value>; expiresMs: number }

/**
 * Results of requests to the API server for a few seconds. Concurrent requests for a key share one call of `load`; a failed call is not
 * cached.
 */
export class ExpiringCache<Value> {
  readonly #maxEntries: number
  readonly #nowMs: () => number
  readonly #entries = new Map<string, Entry<Value>>()

  constructor({ maxEntries, nowMs = () => performance.now() }: ExpiringCacheOptions) {
    this.#maxEntries = maxEntries
    this.#nowMs = nowMs
  }

  get size(): number {
    return this.#entries.size
  }

  /** The value, if it was set or loaded and has not expired. */
  peek(key: string): Promise<Value> | undefined {
    const known = this.#entries.get(key)
    return known && known.expiresMs > this.#nowMs() ? known.value : undefined
  }

  set(key: string, value: Value, expiresMs: number): void {
    this.#insert(key, { value: Promise.resolve(value), expiresMs })
  }

  /** @param ttlMs how long a value may be used, counted from the start of its request: the API server may have decided right then. */
  get(key: string, load: () => Promise<Value>, ttlMs: (value: Value) => number): Promise<Value> {
    const known = this.peek(key)
    if (known) return known
    const startedMs = this.#nowMs()
    const entry: Entry<Value> = { value: load(), expiresMs: Number.POSITIVE_INFINITY }
    this.#insert(key, entry)
    entry.value.then(
      value => {
        entry.expiresMs = startedMs + ttlMs(value)
      },
      () => {
        if (this.#entries.get(key) === entry) this.#entries.delete(key)
      },
    )
    return entry.value
  }

  #insert(key: string, entry: Entry<Value>): void {
    // Deleted first, so that the order of the map is the order of the requests.
    this.#entries.delete(key)
    this.#entries.set(key, entry)
    if (this.#entries.size > this.#maxEntries) this.#entries.delete(this.#entries.keys().next().value as string)
  }
}
