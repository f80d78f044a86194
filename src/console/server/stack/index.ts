/**
 * @module console/server/stack: the parts of the page of a Stack. Start reading at `stack-routes.ts`.
 * In: a request of a user and a client with exactly the rights of that user. Out: what `protocol/stack-details.ts` has.
 * Nothing here is cached: each part is read when it is shown. What takes long for a large state or text is in `console/server/offload/`.
 * Pure: `variable-sources.ts`, `dependency-graph.ts`.
 */
export { rollbackState } from './rollback-state.ts'
export { stackRoutes } from './stack-routes.ts'
