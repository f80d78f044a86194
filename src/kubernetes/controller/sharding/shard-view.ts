import type { Client, LeaseBody } from '../../client/index.ts'
import { leaseResource } from '../../client/index.ts'
import type { KubeObject } from '../../object/index.ts'
import { type Buckets, bucketsWhere } from './bucket.ts'
import type { ShardOptions } from './options.ts'
import { parseRing, type Ring } from './ring.ts'

/** The label of the Leases of a ring, with the ring's name as its value. */
export const ringLabel = 'sharding.oarlock.dev/ring'
/** The annotation of the ring's Lease that has the ring. */
export const ringAnnotation = 'sharding.oarlock.dev/ring'
/** The annotation of a slot's Lease that has what its member acknowledged. */
export const reportAnnotation = 'sharding.oarlock.dev/report'

/** Name of the Lease of the ring. */
export const ringLeaseName = (name: string): string => `${name}-ring`

/** Name of the Lease of a slot. */
export const slotLeaseName = (name: string, slot: number): string => `${name}-${slot}`

/** The slot of a Lease by its name; undefined for the ring's Lease and others. */
export function slotOfLease(name: string, leaseName: string): number | undefined {
  if (!leaseName.startsWith(`${name}-`)) return undefined
  const text = leaseName.slice(name.length + 1)
  return /^\d{1,2}$/.test(text) ? Number(text) : undefined
}

/** A member as a reader of the ring sees it. */
export type ShardMember = {
  readonly slot: number
  /** The holder of the slot's Lease, such as `pod-1_3f2a90c1.1`; undefined while the slot is vacant. */
  readonly session: string | undefined
  /** It is stopping: its buckets pass to others. */
  readonly isLeaving: boolean
  /** When it last renewed its Lease, by its own wall clock; for people only. */
  readonly renewTime: string | undefined
  /** The buckets that it holds. */
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

function memberOf(slot: number, ring: Ring, lease: KubeObject<LeaseBody> | undefined): ShardMember {
  const { holders, targets, releasing } = ring
  return {
    slot,
    session: lease?.spec?.holderIdentity || undefined,
    isLeaving: parseReport(lease?.metadata.annotations?.[reportAnnotation])?.isLeaving ?? false,
    renewTime: lease?.spec?.renewTime ?? undefined,
    buckets: bucketsWhere(bucket => holders[bucket] === slot),
    gaining: bucketsWhere(bucket => targets[bucket] === slot && holders[bucket] !== slot),
    losing: bucketsWhere(bucket => holders[bucket] === slot && targets[bucket] !== slot && releasing[bucket] === 1),
  }
}

/**
 * The fencing token of a version of the ring: the resourceVersion of its Lease, which rises even if the Lease is deleted and created
 * again. On a server whose versions are no integers it is the ring's version.
 */
export function fenceOf(resourceVersion: string, version: number): number {
  const fence = Number(resourceVersion)
  return Number.isSafeInteger(fence) && fence > 0 ? fence : version
}

/** What a member acknowledges, in an annotation of its Lease. */
export type MemberReport = {
  /** The UID of the ring's Lease; empty: it has seen none. */
  readonly ring: string
  /** From this version on it works on nothing that the ring does not let it work on, except `busy`. */
  readonly stopped: number
  /** Its caches have all buckets that this version gives to it. */
  readonly prepared: number
  /** Buckets that it must give up, on which a reconcile is still running. */
  readonly busy: Buckets
  /** It is stopping and wants no buckets. */
  readonly isLeaving: boolean
}

export const noReport: MemberReport = { ring: '', stopped: 0, prepared: 0, busy: [], isLeaving: false }

export function formatReport(report: MemberReport): string {
  return JSON.stringify(report)
}

/** Returns undefined for what is not a report. */
export function parseReport(text: string | undefined): MemberReport | undefined {
  if (text === undefined) return undefined
  try {
    const { ring, stopped, prepared, busy, isLeaving } = JSON.parse(text) as Record<string, unknown>
    const isReport = typeof ring === 'string' && typeof stopped === 'number' && typeof prepared === 'number' && Array.isArray(busy)
    return isReport ? { ring, stopped, prepared, busy: busy.filter(Number.isInteger), isLeaving: isLeaving === true } : undefined
  } catch {
    return undefined
  }
}
