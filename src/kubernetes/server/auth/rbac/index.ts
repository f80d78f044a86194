/**
 * @module auth/rbac: authorization by Roles, ClusterRoles and their bindings. Start reading at `rbac.ts`.
 * In: the store's tables of the four kinds and their commits. Out: decisions, the rules of a user, and errors for privilege escalation.
 * Out of scope: writing the bootstrap roles and aggregated roles (lifecycle/).
 */
export { aggregateRules, aggregationSelectors } from './aggregate.ts'
export {
  autoUpdateAnnotation,
  type BootstrapClusterRole,
  bootstrapClusterRoleBindings,
  bootstrapClusterRoles,
  bootstrapLabels,
  kubeletClientUser,
} from './bootstrap-policy.ts'
export { checkEscalation } from './escalation.ts'
export { type PolicyRule, uncoveredRules } from './policy-rule.ts'
export { Rbac, type RbacDecision, type RoleRef, rbacGroup, rulesIn, type Subject } from './rbac.ts'
