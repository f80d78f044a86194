import { setTimeout as sleep } from 'node:timers/promises'
import { nameClaimResource, partitionResource, relistFromAnnotation, systemNamespaces } from '../../gateway/index.ts'
import type { Client } from '../../kubernetes/client/index.ts'
import { isReason, setCondition } from '../../kubernetes/object/index.ts'
import { AppStartError } from '../app-start-error.ts'
import { ownedKinds } from './owned-kinds.ts'

/** Keeps a deleted Partition at home until its server has found that it has nothing, and has stopped. */
export const partitionFinalizer = 'oarlock.dev/partition'

export type RemovePartitionOptions = {
  readonly partition: string
  /** Name of the home partition. */
  readonly homeName: string
  readonly home: Client
  readonly local: Client
  readonly signal: AbortSignal
  /** Ends the API server: a gateway that does not know of the deletion must not list it any more. */
  stopServing(): Promise<void>
  /** The data directory is used up. */
  recordRemoved(): void
  readonly onError: (error: unknown) => void
  /** Default 2,000. */
  readonly checkEveryMs?: number | undefined
}

const namedObjects = 5

/**
 * Removes a Partition that is being deleted, when it has no objects and no claims: stops to serve, records at home from which version on watches can continue,
 * and removes the finalizer. What it still has is in its condition `ContentRemaining`.
 * @returns why the process must end; undefined if `signal` was aborted before.
 */
export async function removePartition(options: RemovePartitionOptions): Promise<AppStartError | undefined> {
  const { partition, signal, onError, checkEveryMs = 2_000 } = options
  let stoppedAt: number | undefined
  while (!signal.aborted) {
    try {
      if (stoppedAt === undefined) {
        const { remaining, version } = await readRemaining(options)
        if (remaining.length > 0) await reportRemaining(options, remaining)
        else {
          await options.stopServing()
          stoppedAt = version
        }
      }
      if (stoppedAt !== undefined) {
        await finish(options, stoppedAt)
        return new AppStartError(
          'Partition',
          `partition ${JSON.stringify(partition)} was deleted`,
          'for a new partition use an empty data directory, and a configuration of "oarlock partition add"',
        )
      }
    } catch (error) {
      if (!signal.aborted) onError(error)
    }
    await sleep(checkEveryMs, undefined, { signal }).catch(() => {})
  }
  return undefined
}

/** What the partition has, and what is claimed for it; and the version at which that was read. */
async function readRemaining({
  partition,
  home,
  local,
  signal,
}: RemovePartitionOptions): Promise<{ remaining: string[]; version: number }> {
  const claims = await home.resource(nameClaimResource).listAll({ signal })
  const claimed = claims.items.flatMap(({ spec }) => (spec.partition === partition ? [`${spec.resource} ${spec.name}`] : []))
  const names = new Set(claimed)
  let version = Number(claims.metadata.resourceVersion)
  for (const [resource, kind] of ownedKinds) {
    const { items, metadata } = await local.resource(kind).listAll({ signal })
    version = Math.max(version, Number(metadata.resourceVersion))
    for (const each of items)
      if (resource !== 'namespaces' || !systemNamespaces.includes(each.metadata.name)) names.add(`${resource} ${each.metadata.name}`)
  }
  return { remaining: [...names].sort(), version }
}

async function reportRemaining({ partition, home, signal }: RemovePartitionOptions, remaining: readonly string[]): Promise<void> {
  const partitions = home.resource(partitionResource)
  const { status } = await partitions.get(partition, { signal })
  const more = remaining.length - namedObjects
  const message = `delete what it has: ${remaining.slice(0, namedObjects).join(', ')}${more > 0 ? ` and ${more} more` : ''}`
  const condition = { type: 'ContentRemaining', status: 'True', reason: 'ObjectsExist', message } as const
  if (status?.conditions?.some(({ type, message: known }) => type === condition.type && known === message)) return
  await partitions.patchStatus(partition, { status: { conditions: setCondition(status?.conditions, condition, Date.now()) } }, { signal })
}

async function finish({ partition, homeName, home, signal, recordRemoved }: RemovePartitionOptions, version: number): Promise<void> {
  const partitions = home.resource(partitionResource)
  const { metadata } = await partitions.get(homeName, { signal })
  const before = Number(metadata.annotations?.[relistFromAnnotation] ?? 0) || 0
  const annotations = { [relistFromAnnotation]: String(Math.max(before, version)) }
  // Before the finalizer: who sees that the Partition is gone sees this too.
  await partitions.patch(homeName, { metadata: { resourceVersion: metadata.resourceVersion, annotations } } as object, {
    type: 'merge',
    signal,
  })
  recordRemoved()
  try {
    const { metadata: own } = await partitions.get(partition, { signal })
    const finalizers = own.finalizers?.filter(each => each !== partitionFinalizer) ?? []
    const { uid, resourceVersion } = own
    await partitions.patch(partition, { metadata: { uid, resourceVersion, finalizers } } as object, { type: 'merge', signal })
  } catch (error) {
    if (!isReason(error, 'NotFound')) throw error
  }
}
