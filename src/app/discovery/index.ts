/**
 * @module app/discovery: where the roles of this installation are reached. Each role writes its address into a ConfigMap of its own in
 * `oarlock-system` (`endpoint-entry.ts`), which no other role may write; commands, controllers and workers read it. In `oarlock up` there is
 * none: all roles are on the address of the API server. Every authenticated user may read the ConfigMaps: they hold no secrets.
 */
export {
  type ClaimingStores,
  type ClaimRefusal,
  claimRefusal,
  claimStores,
  type Generation,
  type GenerationStore,
  readStoresClaim,
} from './claim-stores.ts'
export { type EndpointRole, endpointName, endpointRoles, findEntry } from './endpoint-entry.ts'
export { keepPublishing, type Publication, publishEndpoint, withdrawEndpoints } from './publish-endpoint.ts'
export { type Endpoint, readEndpoint } from './read-endpoint.ts'
export { type Leader, readLeader } from './read-leader.ts'
export { isSamePartition, type PartitionAddress, readPartitionOf } from './read-partition.ts'
