import { satisfiesVersion, type Worker } from '../../../api/index.ts'
import { formatQuantity, parseQuantity, quantityMillis, quantityValue } from '../../../kubernetes/object/index.ts'
import type { Requirements } from '../queue/index.ts'

/**
 * The first requirement that the Worker does not meet, even when idle; undefined if it meets all. A Worker that does not report its engines is
 * assumed to have every engine, but no particular version. A Worker that does not report its isolation levels offers only Process; one that
 * does not report its networks is assumed to have every network.
 *
 * @param engines those that Workers of the pool report. A Run whose engine no Worker has, and that requires no version, may be assigned to any
 * Worker: it fails with EngineNotFound, whose message explains how to install the engine. That helps more than a Run that stays queued.
 */
export function unmetRequirement(requirements: Requirements, { metadata, status }: Worker, engines: Engines): string | undefined {
  if (requirements.violation !== undefined) return requirements.violation
  for (const [key, value] of Object.entries(requirements.labels)) {
    const actual = metadata.labels?.[key]
    if (actual !== value) return `label ${key}=${value}${actual === undefined ? '' : ` (it has ${key}=${actual})`}`
  }
  const { isolation, network } = requirements
  if (isolation !== undefined && !status?.isolation?.includes(isolation)) {
    return `isolation ${isolation} (it ${status?.isolation ? `offers ${status.isolation.join(' and ')}` : 'reports no isolation levels'})`
  }
  if (network !== undefined && status?.networks?.includes(network) === false) {
    return `network ${network} (it offers ${status.networks.join(' and ') || 'none'}; "oarlock doctor" on its machine shows why)`
  }
  const { cpu, memory } = status?.capacity ?? {}
  if (cpu !== undefined && requirements.cpuMillis > quantityMillis(parseQuantity(cpu))) {
    return `cpu ${requirements.cpuMillis}m (its capacity is ${cpu})`
  }
  if (memory !== undefined && requirements.memoryBytes > quantityValue(parseQuantity(memory))) {
    return `memory ${formatMemory(requirements.memoryBytes)} (its capacity is ${memory})`
  }
  const { engine, engineVersion } = requirements
  const version = status?.engines?.[engine]
  if (engines.has(engine) && status?.engines && version === undefined) return `engine ${engine}`
  if (engineVersion === undefined) return undefined
  if (version === undefined) return `engine ${engine} ${engineVersion} (its version is unknown)`
  return satisfiesVersion(version, engineVersion) ? undefined : `engine ${engine} ${engineVersion} (its version is ${version})`
}

/** The engines that Workers of a pool report. */
export type Engines = { has(engine: string): boolean }

/** The engines that at least one of the Workers reports. */
export function enginesOf(workers: readonly Worker[]): Set<string> {
  return new Set(workers.flatMap(({ status }) => Object.keys(status?.engines ?? {})))
}

/** As a quantity of Kubernetes, such as `512Mi`. */
export function formatMemory(bytes: number): string {
  return formatQuantity({ nanos: BigInt(bytes) * 1_000_000_000n, form: 'binary' })
}
