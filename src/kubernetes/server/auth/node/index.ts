/**
 * @module auth/node: the rights of kubelets. Start reading at `node-authorizer.ts`.
 * In: requests of users `system:node:NAME` of the group `system:nodes`, and the stored Pods. Out: what such a user may read and write.
 */
export { NodeAuthorizer } from './node-authorizer.ts'
export { nodeRestriction } from './node-restriction.ts'
export { nodeNameOf, nodeUser } from './node-user.ts'
