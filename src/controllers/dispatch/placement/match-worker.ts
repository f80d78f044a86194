import { satisfiesVersion, type Worker } from '../../../api/index.ts'
import { parseQuantity, quantityMillis, quantityValue } from '../../../kubernetes/object/index.ts'
import type { Requirements } from '../queue/index.ts'

/**
 * Why the Worker will not do for the needs, however idle it is; undefined when it will. A Worker that does not say which
 * engines it has is taken to have them, in any version but a required one; one that does not say which isolation it can give can give
 * none but Process.
 *
 * @param engines those that Workers of its pool say they have. A Run whose engine none has, and that needs no version of it, is given
 * to any: it ends as EngineNotFound, which says how to get it, and that is more than waiting says.
 */
export function unmetRequirement(requirements: Requirements, { metadata, status }: Worker, engines: Engines): string | undefined {
  for (const [key, value] of Object.entries(requirements.labels)) {
    const has = metadata.labels?.[key]
    if (has !== value) return `label ${key}=${value}${has === undefined ? '' : `, it has ${key}=${has}`}`
  }
  const { isolation } = requirements
  if (isolation !== undefined && !status?.isolation?.includes(isolation)) {
    const offers = status?.isolation ? `it can give ${status.isolation.join(' and ')}` : 'it does not say that it can give that'
    return `isolation ${isolation}, ${offers}`
  }
  const { cpu, memory } = status?.capacity ?? {}
  if (cpu !== undefined && requirements.cpuMillis > quantityMillis(parseQuantity(cpu)))
    return `cpu ${requirements.cpuMillis}m, it has ${cpu} in all`
  if (memory !== undefined && requirements.memoryBytes > quantityValue(parseQuantity(memory))) {
    return `memory ${formatBytes(requirements.memoryBytes)}, it has ${memory} in all`
  }
  const { engine, engineVersion } = requirements
  const version = status?.engines?.[engine]
  if (engines.has(engine) && status?.engines && version === undefined) return `engine ${engine}`
  if (engineVersion === undefined) return undefined
  if (version === undefined) return `engine ${engine} ${engineVersion}, it does not say which version it has`
  return satisfiesVersion(version, engineVersion) ? undefined : `engine ${engine} ${engineVersion}, it has ${version}`
}

/** The engines that Workers of a pool say they have. */
export type Engines = { has(engine: string): boolean }

/** What {@link unmetRequirement} is told of the Workers of a pool. */
export function enginesOf(workers: readonly Worker[]): Set<string> {
  return new Set(workers.flatMap(({ status }) => Object.keys(status?.engines ?? {})))
}

/** `512Mi`, or bytes where that is not a whole number. */
export function formatBytes(bytes: number): string {
  const mebi = 2 ** 20
  return bytes % mebi === 0 ? `${bytes / mebi}Mi` : `${bytes}`
}
