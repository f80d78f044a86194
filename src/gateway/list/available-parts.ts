import { StatusError } from '../../kubernetes/object/index.ts'
import type { Partition } from '../partition/index.ts'
import type { GatewayUser } from '../request/index.ts'
import type { MergedPart } from '../routing/index.ts'

/** Query parameter by which a client accepts a list without the objects of partitions that do not answer. */
export const partialParameter = 'allowPartial'

type Connected = MergedPart & { readonly connection: Partition }

/**
 * The parts of a list or watch with their connections: all of them, or with `allowsPartial` those that answer, and the names of the others.
 * @throws {StatusError} naming a partition that does not answer, or whose versions cannot be compared, unless `allowsPartial`; if none answers, always.
 */
export async function availableParts(
  parts: readonly MergedPart[],
  connectionOf: (partition: string) => Partition,
  { user, signal, allowsPartial }: { readonly user: GatewayUser; readonly signal: AbortSignal; readonly allowsPartial: boolean },
): Promise<{ readonly parts: readonly Connected[]; readonly missing: readonly string[] }> {
  const connect = async (part: MergedPart): Promise<Connected> => {
    const connection = connectionOf(part.partition)
    // Asked each time if one may be missing: that it was comparable once does not mean that it answers now.
    await (allowsPartial ? connection.progress(user, 0, [], signal) : connection.requireComparable(user, signal))
    return { ...part, connection }
  }
  if (!allowsPartial) return { parts: await Promise.all(parts.map(connect)), missing: [] }
  const results = await Promise.allSettled(parts.map(connect))
  const available = results.flatMap(result => (result.status === 'fulfilled' ? [result.value] : []))
  const failed = results.find(result => result.status === 'rejected')
  if (failed && (available.length === 0 || !(failed.reason instanceof StatusError))) throw failed.reason
  const missing = parts.flatMap(({ partition }, index) => (results[index]?.status === 'rejected' ? [partition] : []))
  return { parts: available, missing }
}

/** The header that names what a list lacks. */
export function partialWarning(missing: readonly string[]): { readonly warning?: string } {
  if (missing.length === 0) return {}
  return { warning: `299 - "this list is incomplete: partitions ${missing.join(', ')} do not answer, and their objects are missing"` }
}
