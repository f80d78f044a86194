import { partitionResource, relistFromAnnotation } from '../../gateway/index.ts'
import type { Client } from '../../kubernetes/client/index.ts'
import { isReason } from '../../kubernetes/object/index.ts'

/** Keeps a deleted Partition at home until its server has found that it has nothing, and has stopped. */
export const partitionFinalizer = 'oarlock.dev/partition'

/**
 * The last step of the removal of a Partition that is being deleted: records at home from which version on watches can continue, then lets the Partition go.
 * @throws {StatusError} Conflict if another partition is removed at the same time: try again.
 */
export async function recordRemoval(
  home: Client,
  {
    name,
    homeName,
    version,
    signal,
  }: { readonly name: string; readonly homeName: string; readonly version: number; readonly signal: AbortSignal },
): Promise<void> {
  const partitions = home.resource(partitionResource)
  const { metadata } = await partitions.get(homeName, { signal })
  const before = Number(metadata.annotations?.[relistFromAnnotation] ?? 0) || 0
  const annotations = { [relistFromAnnotation]: String(Math.max(before, version)) }
  // Before the finalizer: who sees that the Partition is gone sees this too.
  const { resourceVersion } = metadata
  await partitions.patch(homeName, { metadata: { resourceVersion, annotations } } as object, { type: 'merge', signal })
  const own = await partitions.getOrUndefined(name, { signal })
  if (!own) return
  const { uid, finalizers = [] } = own.metadata
  const others = finalizers.filter(each => each !== partitionFinalizer)
  const change = { metadata: { uid, resourceVersion: own.metadata.resourceVersion, finalizers: others } } as object
  await partitions.patch(name, change, { type: 'merge', signal }).catch(error => {
    if (!isReason(error, 'NotFound')) throw error
  })
}
