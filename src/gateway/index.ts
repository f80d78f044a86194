/**
 * @module gateway: one Kubernetes API for many API servers, its partitions. Start reading at `gateway.ts`, then `decide-route.ts` and `merge-events.ts`.
 * In: requests of users, a map of what is where. Out: requests to partitions, merged lists and watches.
 * Deciders are pure; invariant 6 (a watch is a log) holds across partitions because resource versions are comparable.
 */

export { mayUpgrade } from '../kubernetes/object/route.ts'
export { accountNamespace } from './account-namespace.ts'
export { Announcements } from './announce-role.ts'
export type { ClientRequest, ClientResponse } from './client-request.ts'
export {
  decideOwner,
  decideRoute,
  type ObjectOwner,
  type PartitionRole,
  partitionLabel,
  type RoutedRequest,
  type RouteTarget,
  type RoutingMap,
  roleOf,
  tenantLabel,
} from './decide-route.ts'
export { DiscoveredScopes } from './discovered-scopes.ts'
export { Gateway } from './gateway.ts'
export type { GatewayMap, GatewayOptions } from './gateway-options.ts'
export { clusterKindClasses, systemNamespaces } from './kind-classes.ts'
export {
  claimName,
  createWithinMs,
  gatewayKinds,
  type NameClaim,
  nameClaimResource,
  type Partition as PartitionObject,
  partitionResource,
  relistFromAnnotation,
} from './kinds.ts'
export { Partition, type PartitionOptions } from './partition.ts'
export { defaultRequestLimits, type RequestLimitOptions } from './request-limits.ts'
export { gatewayProof } from './request-target.ts'
export { RoutingState, renewedAnnotation } from './routing-state.ts'
export { SeenVersion } from './seen-version.ts'
export { readServedKinds } from './served-kinds.ts'
export { type GatewayUser, gatewayUser, userHeaders } from './user-headers.ts'
