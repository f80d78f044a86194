import { join } from 'node:path'
import { removeEntry } from '../dependencies/index.ts'
import { removeContent } from '../workspace/index.ts'
import { archivesOf, type CacheEntry, listCache, storesOf } from './list-cache.ts'
import { type PruneLimits, selectForRemoval } from './select-for-removal.ts'

export type PruneResult = {
  removed: CacheEntry[]
  /** Of the removed entries. */
  freedBytes: number
  /** What the cache directory, or the domain, still has. */
  kept: CacheEntry[]
}

/**
 * Removes what `limits` select, whatever else works in the directory: a Run that begins to use an entry keeps it. With `isDryRun` nothing is
 * removed, and the result is what would be.
 * @throws the error of the file system.
 */
export async function pruneCache(cacheDir: string, limits: PruneLimits, { isDryRun = false } = {}): Promise<PruneResult> {
  const entries = await listCache(cacheDir)
  const removed: CacheEntry[] = []
  for (const entry of selectForRemoval(entries, limits)) if (isDryRun || (await remove(cacheDir, entry))) removed.push(entry)
  const kept = entries.filter(entry => !removed.includes(entry) && (limits.domain === undefined || entry.domain === limits.domain))
  return { removed, freedBytes: removed.reduce((sum, { bytes }) => sum + bytes, 0), kept }
}

async function remove(cacheDir: string, entry: CacheEntry): Promise<boolean> {
  const { dependencies, content } = storesOf(cacheDir)
  if (entry.kind === 'Dependencies') return await removeEntry(entry.path, join(dependencies, 'staging'))
  if (entry.kind === 'Archives') {
    await archivesOf(cacheDir).clear()
    return true
  }
  return await removeContent(content, entry)
}
