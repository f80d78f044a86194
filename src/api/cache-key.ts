import type { StackSpec } from './stack.ts'

/**
 * Equal for Stacks with the same dependencies (modules, providers, packages): the engine and the location of the source. A
 * Worker lists the keys of its cached dependencies in `status.caches`. Undefined for inline files, which have few dependencies.
 */
export function cacheKey({ engine, source }: Pick<StackSpec, 'engine' | 'source'>): string | undefined {
  if (source.git) return `${engine} ${source.git.url} ${source.git.directory ?? ''}`.trim()
  return source.path ? `${engine} ${source.path.path}` : undefined
}

/** Maximum number of keys in a Worker's `status.caches`. */
export const maxCacheKeys = 64
