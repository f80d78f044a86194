import type { Client, LeaseBody } from '../../client/index.ts'
import { leaseResource } from '../../client/index.ts'
import type { KubeObject } from '../../object/index.ts'
import { type Buckets, bucketCount, bucketsWhere } from './bucket.ts'
import { fenceOf } from './fence.ts'
import { ringAnnotation, ringLabel, ringLeaseName, slotOfLease } from './lease-names.ts'
import { parseReport, reportAnnotation } from './member-report.ts'
import type { ShardOptions } from './options.ts'
import { parseRing, type Ring } from './ring.ts'

/** A member as a reader of the ring sees it. */
export type ShardMember = {
  readonly slot: number
  /** The holder of the slot's Lease, such as `pod-1_3f2a90c1.1`; undefined while the slot is vacant. */
  readonly session: string | undefined
  /** It is stopping: its buckets pass to others. */
  readonly isLeaving: boolean
  /** When it last renewed its Lease, by its own wall clock; for people only. */
  readonly renewTime: string | undefined
  /** How long its Lease is valid after a renewal; undefined if the Lease does not have it. */
  readonly leaseDurationMs: number | undefined
  /** The buckets that it holds, also after its Lease expired and until another member takes them. */
  readonly buckets: Buckets
  /** Buckets that it will get: it fills its caches, or waits until their holder has stopped. */
  readonly gaining: Buckets
  /** Buckets that it holds and must give up. */
  readonly losing: Buckets
}

/** The ring and its members at one instant. */
export type ShardView = {
  /** Rises with every change of the ring. */
  readonly version: number
  /** The fencing token of this version: rises with it, also when the ring was deleted and created again. */
  readonly fence: number
  /** In the order of their slots, with vacant slots that still hold buckets. */
  readonly members: readonly ShardMember[]
  /**
   * The member that holds a bucket; undefined while none does. The bucket of a root is `bucketOf(uid)`, that of an owned object
   * `labeledBucketOf(labels)`.
   */
  ownerOf(bucket: number): ShardMember | undefined
}

/**
 * Reads the ring and its members from the API server, for commands and dashboards; undefined if there is no ring of this name.
 * Needs the right to list Leases in the namespace.
 */
export async function readShards(
  client: Client,
  { name, namespace }: Pick<ShardOptions, 'name' | 'namespace'>,
): Promise<ShardView | undefined> {
  const { items } = await client.resource(leaseResource).listAll({ namespace, labelSelector: `${ringLabel}=${name}` })
  return shardViewOf(name, items)
}

/** The view that a list of the Leases of a ring shows. */
export function shardViewOf(name: string, leases: readonly KubeObject<LeaseBody>[]): ShardView | undefined {
  const lease = leases.find(candidate => candidate.metadata.name === ringLeaseName(name))
  const ring = parseRing(lease?.metadata.annotations?.[ringAnnotation])
  if (!lease || !ring) return undefined
  const bySlot = new Map(leases.map(candidate => [slotOfLease(name, candidate.metadata.name), candidate]))
  const slots = new Set([...ring.members.keys(), ...ring.holders, ...ring.targets])
  for (const slot of bySlot.keys()) if (slot !== undefined) slots.add(slot)
  const members = [...slots]
    .filter(slot => slot >= 0)
    .sort((a, b) => a - b)
    .map(slot => memberOf(slot, ring, bySlot.get(slot)))
  return {
    version: ring.version,
    fence: fenceOf(lease.metadata.resourceVersion, ring.version),
    members: members.filter(({ session, buckets, gaining }) => session !== undefined || buckets.length > 0 || gaining.length > 0),
    ownerOf: bucket => members.find(({ slot }) => slot === ring.holders[bucket]),
  }
}

/** Whether `count` members hold all buckets between them and none moves. */
export function isAtRest(view: ShardView | undefined, count: number): boolean {
  if (!view) return false
  const live = view.members.filter(({ session }) => session !== undefined)
  const held = view.members.reduce((sum, { buckets }) => sum + buckets.length, 0)
  const isMoving = view.members.some(({ gaining, losing }) => gaining.length + losing.length > 0)
  return live.length === count && live.every(({ buckets }) => buckets.length > 0) && held === bucketCount && !isMoving
}

function memberOf(slot: number, ring: Ring, lease: KubeObject<LeaseBody> | undefined): ShardMember {
  const { holders, targets, releasing } = ring
  const seconds = lease?.spec?.leaseDurationSeconds
  return {
    slot,
    session: lease?.spec?.holderIdentity || undefined,
    isLeaving: parseReport(lease?.metadata.annotations?.[reportAnnotation])?.isLeaving ?? false,
    renewTime: lease?.spec?.renewTime ?? undefined,
    leaseDurationMs: typeof seconds === 'number' && seconds > 0 ? seconds * 1_000 : undefined,
    buckets: bucketsWhere(bucket => holders[bucket] === slot),
    gaining: bucketsWhere(bucket => targets[bucket] === slot && holders[bucket] !== slot),
    losing: bucketsWhere(bucket => holders[bucket] === slot && targets[bucket] !== slot && releasing[bucket] === 1),
  }
}
