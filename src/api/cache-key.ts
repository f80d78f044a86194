import { sha256 } from '../kubernetes/util/index.ts'
import type { StackSpec } from './stack.ts'

/**
 * Equal for Stacks with the same dependencies (modules, providers, packages): the engine and the location of the source. A
 * Worker lists the keys of its cached dependencies in `status.caches`. Undefined for inline files, which have few dependencies.
 */
export function cacheKey({ engine, source }: Pick<StackSpec, 'engine' | 'source'>): string | undefined {
  if (source.git) return `${engine} ${source.git.url} ${source.git.directory ?? ''}`.trim()
  return source.path ? `${engine} ${source.path.path}` : undefined
}

/**
 * The key in `status.caches` of a Worker whose host has dependencies with this digest installed for this trust domain: those of other domains
 * are of no use to a Run. A hash: a user who may read Workers does not learn which namespaces use the host.
 */
export const dependencyCacheKey = (trustDomain: string, digest: string): string =>
  `dependencies ${sha256(`${trustDomain} ${digest}`).slice(0, 16)}`

/** Maximum number of keys in a Worker's `status.caches`. */
export const maxCacheKeys = 64
