import type { RunSpec } from './run.ts'
import type { StackSpec } from './stack.ts'

/**
 * Equal for Stacks with the same dependencies (modules, providers, packages): the engine and the location of the source. A
 * Worker lists the keys of its cached dependencies in `status.caches`. Undefined for inline files, which have few dependencies.
 */
export function cacheKey({ engine, source }: Pick<StackSpec, 'engine' | 'source'>): string | undefined {
  if (source.git) return `${engine} ${source.git.url} ${source.git.directory ?? ''}`.trim()
  return source.path ? `${engine} ${source.path.path}` : undefined
}

/** The key in `status.caches` of a Worker whose host has dependencies with this digest installed. */
export const dependencyCacheKey = (digest: string): string => `dependencies ${digest.slice(0, 16)}`

/** The keys that a Run prefers Workers by, the most valuable first: installed dependencies, then its source. */
export function cacheKeys({ stack, dependencyDigest }: Pick<RunSpec, 'stack' | 'dependencyDigest'>): string[] {
  const source = cacheKey(stack)
  return [...(dependencyDigest === undefined ? [] : [dependencyCacheKey(dependencyDigest)]), ...(source === undefined ? [] : [source])]
}

/** Maximum number of keys in a Worker's `status.caches`. */
export const maxCacheKeys = 64
