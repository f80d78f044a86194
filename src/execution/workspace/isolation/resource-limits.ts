import type { StackSpec } from '../../../api/index.ts'
import { formatQuantity, parseQuantity, quantityMillis, quantityValue } from '../../../kubernetes/object/index.ts'

/** What a Run may use. Undefined: as much as there is. */
export type RunLimits = {
  /** In CPUs, such as 1.5. */
  cpus?: number
  memoryBytes?: number
  /** Processes and threads with the kernel's counter, processes when watched. */
  pids?: number
  /** Of the Run's directory, its /tmp and HOME included. */
  diskBytes?: number
}

/** Below this nothing that does work starts, and the mistake (`512m` for `512Mi`) is common. */
const leastBytes = 16 * 1024 * 1024

/**
 * Reads `spec.resources`.
 * @throws {RangeError} naming the field, what came and what is allowed.
 */
export function parseRunLimits({ cpu, memory, pids, disk }: NonNullable<StackSpec['resources']>): RunLimits {
  const limits: RunLimits = {}
  if (cpu !== undefined) {
    limits.cpus = quantityMillis(quantityOf('spec.resources.cpu', cpu)) / 1_000
    if (limits.cpus < 0.01) throw new RangeError(`spec.resources.cpu ${JSON.stringify(cpu)} must be at least 10m (a hundredth of a CPU)`)
  }
  if (memory !== undefined) limits.memoryBytes = bytesOf('spec.resources.memory', memory)
  if (pids !== undefined) limits.pids = pids
  if (disk !== undefined) limits.diskBytes = bytesOf('spec.resources.disk', disk)
  return limits
}

function bytesOf(field: string, text: string): number {
  const bytes = quantityValue(quantityOf(field, text))
  if (bytes >= leastBytes) return Math.floor(bytes)
  const hint = /m$/.test(text) ? ' (m means thousandths; Mi are mebibytes)' : ''
  throw new RangeError(`${field} ${JSON.stringify(text)} must be at least 16Mi${hint}`)
}

function quantityOf(field: string, text: string) {
  try {
    return parseQuantity(text)
  } catch (error) {
    throw new RangeError(`${field}: ${(error as Error).message}`)
  }
}

/** Bytes as a quantity for people, rounded up to mebibytes, such as 256Mi. */
export function formatBytes(bytes: number): string {
  return formatQuantity(parseQuantity(`${Math.ceil(bytes / 2 ** 20)}Mi`))
}

/** What was measured. */
export type MeasuredUsage = { memoryBytes: number; pids: number; diskBytes: number }
export type ExceededLimit = { kind: 'Memory' | 'Pids' | 'Disk'; used: number; limit: number }

/** The first limit that is exceeded and that this worker keeps itself; what the kernel keeps is not looked at. */
export function findExceededLimit(
  measured: MeasuredUsage,
  limits: RunLimits,
  byKernel: ReadonlySet<'memory' | 'pids'>,
): ExceededLimit | undefined {
  const { memoryBytes, pids, diskBytes } = limits
  if (memoryBytes !== undefined && !byKernel.has('memory') && measured.memoryBytes > memoryBytes) {
    return { kind: 'Memory', used: measured.memoryBytes, limit: memoryBytes }
  }
  if (pids !== undefined && !byKernel.has('pids') && measured.pids > pids) return { kind: 'Pids', used: measured.pids, limit: pids }
  if (diskBytes !== undefined && measured.diskBytes > diskBytes) return { kind: 'Disk', used: measured.diskBytes, limit: diskBytes }
  return undefined
}
