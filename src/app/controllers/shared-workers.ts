import { labels } from '../../api/index.ts'
import { SharedView, type SharedWorkersOptions } from '../../controllers/dispatch/index.ts'
import { copyAnnotations } from '../../controllers/replication/index.ts'
import { type PartitionObject, partitionLabel, partitionResource } from '../../gateway/index.ts'
import type { Client } from '../../kubernetes/client/index.ts'
import { coerceError, type Log, type Manager } from '../../kubernetes/controller/index.ts'
import { isReason } from '../../kubernetes/object/index.ts'
import { AppStartError } from '../app-start-error.ts'
import { tenantPartitionError } from './tenant-partition-error.ts'

export type SharedWorkersSettings = {
  /** Of the gateway: where the Workers and their Leases of all partitions are. */
  readonly client: Client
  /** Name of the partition whose controllers these are. */
  readonly partition: string
  /** They size the pools of all partitions. */
  readonly isHome: boolean
  /** How many tenant partitions see each worker. Default: 2. */
  readonly viewsPerWorker?: number | undefined
}

/** The cluster of the manager that is the gateway. */
export const workersCluster = 'workers'

/**
 * Whether the partition is home: there its Partition was created, and elsewhere it is a copy.
 * @throws {AppStartError} if the server does not have it, or it has no role for which there are controllers.
 */
export async function readOwnPartition(client: Client, name: string): Promise<{ readonly isHome: boolean }> {
  // Without its CRD the server is no partition.
  const partition = await client
    .resource(partitionResource)
    .getOrUndefined(name)
    .catch(error => {
      if (!isReason(error, 'NotFound')) throw error
      return undefined
    })
  if (!partition)
    throw new AppStartError(
      'Partition',
      `the server ${client.server} has no Partition ${JSON.stringify(name)}`,
      'create it at home, wait until it is copied to this partition, and pass its name with --partition',
    )
  const isHome = partition.metadata.annotations?.[copyAnnotations.homeVersion] === undefined
  if (!isHome && !partition.spec.roles.includes('Tenants'))
    throw new AppStartError(
      'Partition',
      `Partition ${JSON.stringify(name)} has no role Tenants, so that it has no Stacks`,
      'start controllers at home and in partitions with that role only',
    )
  return { isHome }
}

/** Which workers the dispatcher of the partition uses. Call `follow` with its manager, which has the client as {@link workersCluster}. */
export function shareWorkers(
  { partition, isHome, viewsPerWorker }: Omit<SharedWorkersSettings, 'client'>,
  log: Log,
): SharedWorkersOptions & { follow(manager: Manager): void } {
  let known: readonly PartitionObject[] | undefined
  const view = new SharedView({ own: partition, viewsPerWorker, seesAll: isHome })
  return {
    cluster: workersCluster,
    partition,
    selector: view.selector,
    isPreferred: view.isPreferred,
    onChange: listener => view.onChange(listener),
    sizesPools: isHome,
    sees: (partition, worker) => view.sees(partition, worker),
    partitionError: ({ metadata }) => known && tenantPartitionError(metadata.labels?.[partitionLabel], known),
    hasTenant: ({ metadata }) => (metadata.labels?.[labels.partition] ?? (isHome ? partition : undefined)) === partition,
    follow(manager) {
      // The copies in this partition: with home down the last ones stay valid.
      const partitions = manager.informer(partitionResource)
      const update = () => {
        known = partitions.list()
        const tenants = known.filter(({ spec }) => spec.roles.includes('Tenants'))
        try {
          view.setPartitions(tenants.map(({ metadata }) => metadata.name))
        } catch (thrown) {
          log.error({ err: coerceError(thrown) }, 'the workers that are used stay the same')
        }
      }
      let isDue = false
      const updateSoon = () => {
        if (isDue) return
        isDue = true
        // Once for all Partitions of a list, and not before the first one is complete.
        setImmediate(async () => {
          await partitions.whenSynced()
          isDue = false
          update()
        })
      }
      partitions.onChange({ changed: updateSoon })
    },
  }
}
