import type { Registry } from 'prom-client'
import type { KubeObject } from '../kubernetes/object/index.ts'
import type { ClientRequest } from './client-request.ts'
import type { ClientWatchesOptions } from './client-watches.ts'
import type { ObjectOwner, PartitionRole, RoutingMap } from './decide-route.ts'
import type { Partition } from './partition.ts'
import type { RequestLimitOptions } from './request-limits.ts'
import type { GatewayUser } from './user-headers.ts'

/** A routing map, with what new objects need. */
export type GatewayMap = RoutingMap & {
  partitionOfTenant(tenant: string): string | undefined
  partitionOfPool(pool: string): string | undefined
  /** The partitions other than home that serve the kinds of home. */
  copiesOfHome(): readonly string[]
  /** A resource version: before it there was a partition that was removed since. Watches and lists at an earlier one begin again. */
  readonly relistFrom: number
  /** The Tenant that a namespace was created for; undefined of system namespaces, and of those that no partition has. */
  tenantOf(namespace: string): string | undefined
}

export type GatewayOptions = {
  /** Who sent a request; undefined: no valid credential. */
  authenticate(request: ClientRequest): Promise<GatewayUser | undefined>
  /** As it is now. */
  map(): GatewayMap
  connectionOf(partition: string): Partition | undefined
  /** Of a kind, from discovery; undefined if there is no such kind. */
  scopeOf(group: string, plural: string): Promise<'Namespaced' | 'Cluster' | undefined>
  /** Tenants that the user may create namespaces of; of `wanted` only whether it is one. */
  tenantsOf(user: GatewayUser, wanted?: string): Promise<readonly string[]>
  /** Before the first object of a role: `announceRole`. */
  announceRole(partition: string, role: PartitionRole): Promise<void>
  /**
   * Claims the name of an owned object for a partition, or renews its claim. Returns the resource version of the claim.
   * @throws {StatusError} AlreadyExists if another partition has it.
   */
  claim(table: string, name: string, owner: ObjectOwner): Promise<number>
  /** Reads at home which partition has the name, into the map. @throws {StatusError} ServiceUnavailable if home does not answer. */
  lookUp(table: string, name: string): Promise<void>
  /** Reads again which partition has a namespace, because one does not have it. The Partitions are then at least those of `epoch`, unless that takes too long. */
  refreshMap(namespace: string, epoch: number): Promise<void>
  /** Of a CustomResourceDefinition of home, which partitions do not have it Established in this generation; undefined: all have. Default: always. */
  definitionMissing?(definition: KubeObject): string | undefined
  /** The version of home up to which the map knows the Partitions. */
  partitionsEpoch(): number
  /** Waits until the map knows the Partitions of `epoch`, for at most 2 s. */
  waitForPartitions(epoch: number): Promise<void>
  /** Signs continue tokens: the same in all gateways. Default: a random one. */
  readonly tokenKey?: Uint8Array | undefined
  /** Of events that wait for one partition, for each watch. Default 16 MiB. */
  readonly maxWatchBufferBytes?: number | undefined
  /** Limits of the watches that clients share. */
  readonly sharedWatches?: ClientWatchesOptions['shared']
  /** How much one Tenant or user may use at a time. Default: see {@link RequestLimitOptions}. */
  readonly limits?: Partial<RequestLimitOptions> | undefined
  /** Where the metrics of the gateway are registered. Default: nowhere. */
  readonly registry?: Registry | undefined
  readonly log: (message: string, error?: unknown) => void
}
