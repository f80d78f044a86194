import type { StackSpec } from './stack.ts'

/**
 * What Stacks share whose dependencies (modules, providers, packages) are the same: the engine and where the files come
 * from. A Worker lists the keys it has worked with in `status.caches`. Undefined for inline files, which bring little.
 */
export function cacheKey({ engine, source }: Pick<StackSpec, 'engine' | 'source'>): string | undefined {
  if (source.git) return `${engine} ${source.git.url} ${source.git.directory ?? ''}`.trim()
  return source.path ? `${engine} ${source.path.path}` : undefined
}

/** So many keys a Worker lists. */
export const maxCacheKeys = 64
