import type { StackSpec } from '../../../api/index.ts'
import { formatQuantity, parseQuantity, quantityMillis, quantityValue } from '../../../kubernetes/object/index.ts'

/** Limits of a Run. Undefined means unlimited. */
export type RunLimits = {
  /** In CPUs, such as 1.5. */
  cpus?: number
  memoryBytes?: number
  /** Processes and threads when the kernel counts them, processes when the worker does. */
  pids?: number
  /** Size of the Run's directory, including its /tmp and HOME. */
  diskBytes?: number
}

/** No engine starts with less, and `512m` for `512Mi` is a common mistake. */
const minBytes = 16 * 1024 * 1024

/**
 * Parses `spec.resources`.
 * @throws {RangeError} naming the field, the value and what is allowed.
 */
export function parseRunLimits({ cpu, memory, pids, disk }: NonNullable<StackSpec['resources']>): RunLimits {
  const limits: RunLimits = {}
  if (cpu !== undefined) {
    limits.cpus = quantityMillis(parseField('spec.resources.cpu', cpu)) / 1_000
    if (limits.cpus < 0.01) throw new RangeError(`spec.resources.cpu ${JSON.stringify(cpu)} must be at least 10m (a hundredth of a CPU)`)
  }
  if (memory !== undefined) limits.memoryBytes = parseBytes('spec.resources.memory', memory)
  if (pids !== undefined) limits.pids = pids
  if (disk !== undefined) limits.diskBytes = parseBytes('spec.resources.disk', disk)
  return limits
}

function parseBytes(field: string, text: string): number {
  const bytes = quantityValue(parseField(field, text))
  if (bytes >= minBytes) return Math.floor(bytes)
  const hint = /m$/.test(text) ? ' (the suffix m means thousandths; Mi means mebibytes)' : ''
  throw new RangeError(`${field} ${JSON.stringify(text)} must be at least 16Mi${hint}`)
}

function parseField(field: string, text: string) {
  try {
    return parseQuantity(text)
  } catch (error) {
    throw new RangeError(`${field}: ${(error as Error).message}`)
  }
}

/** Bytes as a Kubernetes quantity, rounded up to mebibytes, such as 256Mi. */
export function formatMebibytes(bytes: number): string {
  return formatQuantity(parseQuantity(`${Math.ceil(bytes / 2 ** 20)}Mi`))
}

/** What the worker measured. */
export type MeasuredUsage = { memoryBytes: number; pids: number }
export type ExceededLimit =
  | { kind: 'Memory' | 'Pids'; used: number; limit: number }
  /** `problem`: why the use cannot be measured. `mustKill`: the Run was interrupted for this limit before, and exceeds it further. */
  | { kind: 'Disk'; used: number; limit: number; problem?: string; mustKill?: true }

/** The first exceeded limit on memory or processes that this worker enforces; limits that the kernel enforces are not checked. */
export function findExceededLimit(
  measured: MeasuredUsage,
  limits: RunLimits,
  byKernel: ReadonlySet<'memory' | 'pids'>,
): ExceededLimit | undefined {
  const { memoryBytes, pids } = limits
  if (memoryBytes !== undefined && !byKernel.has('memory') && measured.memoryBytes > memoryBytes) {
    return { kind: 'Memory', used: measured.memoryBytes, limit: memoryBytes }
  }
  if (pids !== undefined && !byKernel.has('pids') && measured.pids > pids) return { kind: 'Pids', used: measured.pids, limit: pids }
  return undefined
}
