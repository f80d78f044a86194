/**
 * @module gateway/kinds: the kinds that only partitions need, and what the gateway must know of all others. Start reading at `kind-classes.ts`.
 * In: the discovery of a server. Out: for each kind its scope, and whether its objects are copied from home, owned by partitions or at home only.
 */

export { DiscoveredScopes } from './discovered-scopes.ts'
export { clusterKindClasses, kindClassOf, leaseOwners, systemNamespaces } from './kind-classes.ts'
export {
  claimName,
  createWithinMs,
  gatewayKinds,
  type NameClaim,
  nameClaimResource,
  type Partition,
  partitionResource,
  relistFromAnnotation,
  renewedAnnotation,
} from './kinds.ts'
export { ownedKinds, ownedResources, tableOf } from './owned-kinds.ts'
export { readServedKinds } from './served-kinds.ts'
