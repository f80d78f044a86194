import type { Registry } from 'prom-client'
import type { KubeObject } from '../kubernetes/object/index.ts'
import type { CreationOptions } from './creation/index.ts'
import type { Partition } from './partition/index.ts'
import type { ClientRequest, GatewayUser, RequestLimitOptions } from './request/index.ts'
import type { GatewayMap } from './routing/index.ts'
import type { ClientWatchesOptions } from './watch/index.ts'

export type GatewayOptions = CreationOptions & {
  /** Who sent a request; undefined: no valid credential. */
  authenticate(request: ClientRequest): Promise<GatewayUser | undefined>
  /** As it is now. */
  map(): GatewayMap
  connectionOf(partition: string): Partition | undefined
  /** Of a kind, from discovery; undefined if there is no such kind. */
  scopeOf(group: string, plural: string): Promise<'Namespaced' | 'Cluster' | undefined>
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
