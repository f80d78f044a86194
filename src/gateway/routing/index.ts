/**
 * @module gateway/routing: where a request belongs. Start reading at `decide-route.ts`, which is pure, then `routing-state.ts`.
 * In: the Partitions, Tenants, pools and claims of home, which are watched. Out: the partition of a request, or the parts of a list or watch.
 * A map may be old: `send-to-owner.ts` reads it again when a partition rejects what it does not own, and `current-map.ts` before a list is complete.
 */

export { type KnownMap, reachEpoch, removedSince, requireCurrentMap } from './current-map.ts'
export {
  decideOwner,
  decideRoute,
  isUnclaimed,
  type MergedPart,
  mayDecide,
  type ObjectOwner,
  type PartitionRole,
  partitionLabel,
  partsOf,
  type RoutedRequest,
  type RouteTarget,
  type RoutingMap,
  roleOf,
  tenantLabel,
} from './decide-route.ts'
export { findRoute } from './find-route.ts'
export type { GatewayMap } from './gateway-map.ts'
export { partsKey, partsText } from './merged-parts.ts'
export { listVersionOf, partQuery } from './part-query.ts'
export { isReview, isUserReview, partitionOfReview, reviewedNamespace } from './read-review.ts'
export { verbOf } from './request-verb.ts'
export { RoutingState } from './routing-state.ts'
export { findNode, misdirected, sendToOwner } from './send-to-owner.ts'
