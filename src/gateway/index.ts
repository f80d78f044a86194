/**
 * @module gateway: one Kubernetes API for many API servers, its partitions. Start reading at `gateway.ts`, then `routing/decide-route.ts` and
 * `watch/merge-events.ts`.
 * In: requests of users, a map of what is where. Out: requests to partitions, merged lists and watches.
 * Deciders are pure; invariant 6 (a watch is a log) holds across partitions because resource versions are comparable.
 *
 * The path of a request: request/ (user, body, limits) → routing/ (which partitions) → creation/, list/ or watch/, where several partitions are involved →
 * partition/ (the connection). A folder imports only folders below it, through their index.ts (`test/import-rules.test.ts`):
 *
 * | layer | folders |
 * |---|---|
 * | composition | `gateway.ts` |
 * | several partitions | creation/, list/, watch/ |
 * | decisions | routing/ |
 * | connections | partition/ |
 * | clients | request/ |
 * | no dependencies | kinds/ |
 */

export { mayUpgrade } from '../kubernetes/object/route.ts'
export { Announcements, claimObjectName } from './creation/index.ts'
export { Gateway } from './gateway.ts'
export type { GatewayOptions } from './gateway-options.ts'
export {
  claimName,
  clusterKindClasses,
  createWithinMs,
  DiscoveredScopes,
  gatewayKinds,
  kindClassOf,
  type NameClaim,
  nameClaimResource,
  ownedKinds,
  type Partition as PartitionObject,
  partitionResource,
  readServedKinds,
  relistFromAnnotation,
  renewedAnnotation,
  systemNamespaces,
} from './kinds/index.ts'
export { Partition, type PartitionOptions, SeenVersion } from './partition/index.ts'
export {
  accountNamespace,
  type ClientRequest,
  type ClientResponse,
  defaultRequestLimits,
  type GatewayUser,
  gatewayProof,
  gatewayUser,
  type RequestLimitOptions,
  userHeaders,
} from './request/index.ts'
export {
  decideOwner,
  decideRoute,
  type GatewayMap,
  type ObjectOwner,
  type PartitionRole,
  partitionLabel,
  type RoutedRequest,
  type RouteTarget,
  type RoutingMap,
  RoutingState,
  roleOf,
  tenantLabel,
} from './routing/index.ts'
