import type { PartitionObject } from '../../gateway/index.ts'
import type { PartitionDirectory } from './identity.ts'

/** Of a Partition at home: the id of the data directory that has its objects. */
export const directoryAnnotation = 'oarlock.dev/data-directory'

export type BindingDecision =
  | { readonly kind: 'bound' }
  /** Write the id into the Partition, if it has not changed. `isFirst`: no other data directory has had objects of the partition. */
  | { readonly kind: 'bind'; readonly isFirst: boolean }
  /** Another data directory has the objects; `server`: where it was served last, if that is known. */
  | { readonly kind: 'reject'; readonly server: string | undefined }

/**
 * Whether a data directory may be that of a Partition. A Partition that names none has never had a server, or only servers of an earlier version, which
 * reported their address: then a directory that was used becomes its own, and an empty one does not.
 * @param partition undefined: home does not have it.
 * @param replaces whether the user declares that the other data directory is lost (`--replace-data`).
 */
export function decideBinding(
  partition: PartitionObject | undefined,
  { id, isBound }: Pick<PartitionDirectory, 'id' | 'isBound'>,
  replaces: boolean,
): BindingDecision {
  const bound = partition?.metadata.annotations?.[directoryAnnotation]
  if (bound === id) return { kind: 'bound' }
  const server = partition?.spec.server
  const isTaken = bound !== undefined || (server !== undefined && !isBound)
  if (isTaken && !replaces) return { kind: 'reject', server }
  return { kind: 'bind', isFirst: !isTaken }
}
