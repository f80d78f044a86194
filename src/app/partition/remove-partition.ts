import { setTimeout as sleep } from 'node:timers/promises'
import { nameClaimResource, ownedKinds, partitionResource, systemNamespaces } from '../../gateway/index.ts'
import type { Client } from '../../kubernetes/client/index.ts'
import { setCondition } from '../../kubernetes/object/index.ts'
import { AppStartError } from '../app-start-error.ts'
import { recordRemoval } from './record-removal.ts'

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
        if (remaining !== undefined) await reportRemaining(options, remaining)
        else {
          await options.stopServing()
          stoppedAt = version
        }
      }
      if (stoppedAt !== undefined) {
        await recordRemoval(options.home, { name: partition, homeName: options.homeName, version: stoppedAt, signal })
        options.recordRemoved()
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

/** Why it must wait; undefined if the partition has nothing, and nothing is claimed for it. And the version at which that was read. */
async function readRemaining({
  partition,
  home,
  local,
  signal,
}: RemovePartitionOptions): Promise<{ readonly remaining: string | undefined; readonly version: number }> {
  const claims = await home.resource(nameClaimResource).listAll({ signal })
  const claimed = claims.items.flatMap(({ spec }) => (spec.partition === partition ? [`${spec.resource} ${spec.name}`] : []))
  let version = Number(claims.metadata.resourceVersion)
  const found: string[] = []
  for (const [resource, kind] of ownedKinds) {
    const { items, metadata } = await local.resource(kind).listAll({ signal })
    version = Math.max(version, Number(metadata.resourceVersion))
    const names = items.map(each => each.metadata.name)
    found.push(...names.filter(name => resource !== 'namespaces' || !systemNamespaces.includes(name)).map(name => `${resource} ${name}`))
  }
  const remaining =
    found.length > 0
      ? `delete what it has: ${listed(found)}`
      : claimed.length > 0
        ? `its names are free within about a minute: ${listed(claimed)}`
        : undefined
  return { remaining, version }
}

function listed(some: readonly string[]): string {
  const more = some.length - namedObjects
  return `${some.slice(0, namedObjects).join(', ')}${more > 0 ? ` and ${more} more` : ''}`
}

async function reportRemaining({ partition, home, signal }: RemovePartitionOptions, message: string): Promise<void> {
  const partitions = home.resource(partitionResource)
  const { status } = await partitions.get(partition, { signal })
  const condition = { type: 'ContentRemaining', status: 'True', reason: 'ObjectsExist', message } as const
  if (status?.conditions?.some(({ type, message: known }) => type === condition.type && known === message)) return
  await partitions.patchStatus(partition, { status: { conditions: setCondition(status?.conditions, condition, Date.now()) } }, { signal })
}
