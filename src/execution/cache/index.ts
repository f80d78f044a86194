/**
 * @module execution/cache: the packages that the workers of a host keep for their next Runs: installed dependencies and provider packages. Start reading at
 * `list-cache.ts`. In: a cache directory. Out: what it holds, which entries a user's limits remove, and their removal.
 * Nothing that a Run uses is removed. Out of scope: the limits that workers keep themselves (`execution/dependencies/`,
 * `execution/workspace/`), git repositories, and other directories of the cache.
 */

export { type CacheEntry, listCache } from './list-cache.ts'
export { type PruneResult, pruneCache } from './prune-cache.ts'
export { type PruneLimits, selectForRemoval } from './select-for-removal.ts'
