import type { GatewayUser } from '../request/index.ts'
import type { Partition } from './partition.ts'

/**
 * Whether a version that a client names can be one that it was given: a partition has reached it. The clocks of partitions are raised to no other one: a client
 * that names the future could hold them so far ahead that partitions whose clocks are behind reject every request.
 * @throws {StatusError} ServiceUnavailable if a partition does not answer.
 */
export async function isKnownVersion(
  version: number,
  {
    parts,
    user,
    signal,
  }: { readonly parts: readonly { readonly connection: Partition }[]; readonly user: GatewayUser; readonly signal: AbortSignal },
): Promise<boolean> {
  if (parts.some(({ connection }) => connection.seenVersion >= version)) return true
  const reached = await Promise.all(parts.map(({ connection }) => connection.progress(user, 0, [], signal)))
  return reached.some(each => each >= version)
}
