import { EvictionOrder } from '../workspace/index.ts'
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
  const order = new EvictionOrder(
    considered.filter(entry => !removed.includes(entry)),
    maxBytes,
  )
  for (let next = order.next(); next; next = order.next()) {
    if (next.isInUse) continue
    removed.push(next)
    order.removed(next)
  }
  return removed
}
