import type { RoutingMap } from './decide-route.ts'

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
