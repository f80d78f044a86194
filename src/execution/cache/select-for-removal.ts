import type { CacheEntry } from './list-cache.ts'

export type PruneLimits = {
  /** Entries that were last used before this time are removed. Milliseconds since the epoch. Default: none. */
  readonly usedBeforeMs?: number | undefined
  /** Then entries are removed until what is left has at most this size. Default: no limit. */
  readonly maxBytes?: number | undefined
  /** Only entries of this trust domain are counted and removed. Default: all domains. */
  readonly domain?: string | undefined
}

type Selectable = Pick<CacheEntry, 'domain' | 'bytes' | 'usedAtMs' | 'isInUse'>

/**
 * The entries that `limits` remove, in the order of removal: as in the workers' own limit always the least recently used one of the domain that
 * has the most. Entries in use are kept, but count: what is left may be larger than `maxBytes`.
 */
export function selectForRemoval<T extends Selectable>(entries: readonly T[], { usedBeforeMs, maxBytes, domain }: PruneLimits): T[] {
  const considered = entries.filter(entry => domain === undefined || entry.domain === domain)
  const oldestFirst = considered.filter(entry => !entry.isInUse).sort((a, b) => a.usedAtMs - b.usedAtMs)
  const removed = oldestFirst.filter(({ usedAtMs }) => usedBeforeMs !== undefined && usedAtMs < usedBeforeMs)
  if (maxBytes === undefined) return removed
  const sizes = new Map<string, number>()
  const add = ({ domain, bytes }: Selectable, sign: 1 | -1) => void sizes.set(domain, (sizes.get(domain) ?? 0) + sign * bytes)
  for (const entry of considered) add(entry, 1)
  for (const entry of removed) add(entry, -1)
  const left = Map.groupBy(oldestFirst.slice(removed.length), entry => entry.domain)
  const total = () => [...sizes.values()].reduce((sum, bytes) => sum + bytes, 0)
  while (total() > maxBytes) {
    const [largest] = [...left.keys()].sort((a, b) => sizes.get(b)! - sizes.get(a)!)
    if (largest === undefined) break
    const next = left.get(largest)!.shift()
    if (!next) {
      left.delete(largest)
      continue
    }
    removed.push(next)
    add(next, -1)
  }
  return removed
}
