/** An entry of a cache that trust domains share, as far as its removal depends on it. */
export type Evictable = { readonly domain: string; readonly bytes: number; readonly usedAtMs: number }

/**
 * Which entries a cache removes until all domains together have at most `maxBytes` (invariant 10): always the least recently used one of the
 * domain that has the most, so that no domain displaces the entries of those that use less. An entry that cannot be removed, because it is
 * in use, still counts.
 */
export class EvictionOrder<T extends Evictable> {
  readonly #maxBytes: number
  readonly #sizes = new Map<string, number>()
  /** Not proposed yet, the least recently used first. */
  readonly #left: Map<string, T[]>

  constructor(entries: readonly T[], maxBytes: number) {
    this.#maxBytes = maxBytes
    const oldestFirst = [...entries].sort((a, b) => a.usedAtMs - b.usedAtMs)
    this.#left = Map.groupBy(oldestFirst, ({ domain }) => domain)
    for (const { domain, bytes } of entries) this.#sizes.set(domain, (this.#sizes.get(domain) ?? 0) + bytes)
  }

  /** The entry to remove next, which is proposed once; undefined if the size is reached, or nothing is left to propose. */
  next(): T | undefined {
    if ([...this.#sizes.values()].reduce((sum, bytes) => sum + bytes, 0) <= this.#maxBytes) return undefined
    const candidates = [...this.#left].filter(([, entries]) => entries.length > 0)
    const [largest] = candidates.sort(([a], [b]) => this.#sizes.get(b)! - this.#sizes.get(a)!)
    return largest?.[1].shift()
  }

  removed({ domain, bytes }: T): void {
    this.#sizes.set(domain, this.#sizes.get(domain)! - bytes)
  }
}
