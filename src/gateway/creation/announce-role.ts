import { setTimeout as sleep } from 'node:timers/promises'
import type { Client } from '../../kubernetes/client/index.ts'
import { isReason, type KubeObject, StatusError } from '../../kubernetes/object/index.ts'
import { type Partition as PartitionObject, partitionResource } from '../kinds/index.ts'
import type { Partition } from '../partition/index.ts'
import { gatewayUser } from '../request/index.ts'
import type { PartitionRole } from '../routing/index.ts'

export type AnnounceOptions = {
  readonly home: string
  /** Of home, as the gateway. */
  readonly client: Client
  connectionOf(partition: string): Partition | undefined
  /** The generation of its object at home that a copy in another partition is of. */
  generationOf(copy: KubeObject): number
  /** How long partitions that do not know of the role are asked again. Default 2,000. */
  readonly patienceMs?: number
}

/** The roles that a gateway announces: each once at a time, however many objects wait for it. */
export class Announcements {
  readonly #options: AnnounceOptions
  readonly #running = new Map<string, Promise<void>>()

  constructor(options: AnnounceOptions) {
    this.#options = options
  }

  /** As {@link announceRole}. */
  async announce(partition: string, role: PartitionRole): Promise<void> {
    const key = `${partition} ${role}`
    const running = this.#running.get(key) ?? announceRole(partition, role, this.#options).finally(() => this.#running.delete(key))
    this.#running.set(key, running)
    await running
  }
}

const askEveryMs = 50
const attempts = 5

/**
 * Before the first object of a role is created in a partition, every partition has a copy of the Partition with that role. A gateway that does not know of the
 * role yet learns from each of them that its map is old (`current-map.ts`), so that none of its lists and watches lacks the object (invariant 12). It is
 * recorded in `status.announcedRoles`, and home rejects claims for a role without it.
 * @throws {StatusError} ServiceUnavailable naming the partitions that do not know of the role, Forbidden if the Partition does not have it or is being deleted.
 */
export async function announceRole(partition: string, role: PartitionRole, options: AnnounceOptions): Promise<void> {
  const partitions = options.client.resource(partitionResource)
  for (let attempt = 0; attempt < attempts; attempt++) {
    const { items } = await partitions.listAll({})
    const target = items.find(({ metadata }) => metadata.name === partition) as PartitionObject | undefined
    requireUsable(partition, role, target)
    const announced = target?.status?.announcedRoles ?? []
    if (announced.includes(role)) return
    const { generation = 1, resourceVersion } = target?.metadata ?? {}
    // One without an address was never started: it has nothing, and no gateway lists it.
    const others = items.filter(({ metadata, spec }) => metadata.name !== options.home && spec.server !== undefined)
    await awaitCopies(
      partition,
      generation,
      others.map(({ metadata }) => metadata.name),
      options,
    )
    // What it gets is newer than all that any partition has shown before it knew of the role.
    const connection = connectionTo(partition, options)
    await ifComparable(connection.progress(gatewayUser, connection.seenVersion))
    try {
      await partitions.patchStatus(partition, { metadata: { resourceVersion }, status: { announcedRoles: [...announced, role] } })
      return
    } catch (error) {
      if (!isReason(error, 'Conflict', 'NotFound')) throw error
    }
  }
  throw unavailable(`Partition ${JSON.stringify(partition)} changes all the time`)
}

function requireUsable(name: string, role: PartitionRole, target: PartitionObject | undefined): void {
  const why = !target
    ? 'does not exist'
    : target.metadata.deletionTimestamp
      ? 'is being deleted'
      : target.spec.roles.includes(role)
        ? undefined
        : `has no role ${role}`
  if (why !== undefined) throw new StatusError('Forbidden', `nothing can be created in partition ${JSON.stringify(name)}: it ${why}`)
}

/** Until each of the partitions has a copy of this generation of the Partition. */
async function awaitCopies(partition: string, generation: number, others: readonly string[], options: AnnounceOptions): Promise<void> {
  const deadlineMs = performance.now() + (options.patienceMs ?? 2_000)
  const known = async (name: string) => {
    try {
      const copy = await connectionTo(name, options).copyOf(gatewayUser, partition)
      return copy ? options.generationOf(copy) : 0
    } catch (error) {
      // A kube-apiserver keeps no copies, and is in no list with others.
      if (isReason(error, 'MethodNotAllowed')) return generation
      throw error
    }
  }
  for (let missing = others; ; ) {
    const generations = await Promise.all(missing.map(known))
    missing = missing.filter((_, index) => (generations[index] ?? 0) < generation)
    if (missing.length === 0) return
    if (performance.now() > deadlineMs)
      throw unavailable(
        `partition ${JSON.stringify(partition)} has got a role just now, and ${missing.join(', ')} ${missing.length === 1 ? 'does' : 'do'} not know of it yet; retry`,
      )
    await sleep(askEveryMs)
  }
}

function connectionTo(name: string, { connectionOf }: AnnounceOptions): Partition {
  const connection = connectionOf(name)
  if (connection) return connection
  throw unavailable(`partition ${JSON.stringify(name)} is not connected to yet; retry`)
}

/** The versions of a kube-apiserver are compared with no others. */
async function ifComparable(progress: Promise<unknown>): Promise<void> {
  await progress.catch(error => {
    if (!isReason(error, 'MethodNotAllowed')) throw error
  })
}

const unavailable = (message: string) => new StatusError('ServiceUnavailable', message, { details: { retryAfterSeconds: 1 } })
