import { equalJson, isJsonObject, type KubeObject, notFound, type ObjectMeta, StatusError } from '../../../object/index.ts'
import { type Authorizer, adminsGroup, type User } from '../user.ts'
import { describeRules, exceedsComparisonLimit, type PolicyRule, quoteAll, uncoveredRules } from './policy-rule.ts'
import { type Rbac, type RoleRef, rbacGroup, rulesIn } from './rbac.ts'

const everything: readonly PolicyRule[] = [
  { verbs: ['*'], apiGroups: ['*'], resources: ['*'] },
  { verbs: ['*'], nonResourceURLs: ['*'] },
]

/** A Role, ClusterRole or binding that is about to be written. */
export type RbacWrite = {
  readonly user: User
  /** `roles`, `clusterroles`, `rolebindings` or `clusterrolebindings`. */
  readonly plural: string
  /** The name in the request path; empty if it has none. */
  readonly name: string
  readonly object: KubeObject
  readonly oldObject: KubeObject | undefined
}

/**
 * Prevents privilege escalation: a user who writes a role needs every rule of it, or the verb `escalate` on it; a user who writes a binding
 * needs every rule of its role, or the verb `bind` on that role. Administrators are exempt.
 * @throws {StatusError} Forbidden with the missing rules; NotFound if the role of a binding does not exist.
 */
export function checkEscalation(rbac: Rbac, authorize: Authorizer, write: RbacWrite): void {
  const { user, plural, object, oldObject } = write
  if (user.groups.includes(adminsGroup)) return
  if (oldObject && changesOnlyGarbageCollectionFields(object, oldObject)) return
  const namespace = object.metadata.namespace ?? ''
  if (plural === 'roles' || plural === 'clusterroles') {
    if (isAllowed(authorize, user, 'escalate', plural, write.name, namespace)) return
    requireRules(rbac, write, namespace, rulesIn(object))
    if (
      (hasAggregation(object) || (oldObject && hasAggregation(oldObject))) &&
      missingRules(rbac, user, namespace, everything).length > 0
    ) {
      throw forbidden(write, 'must have cluster-admin privileges to use the aggregationRule')
    }
    return
  }
  const roleRef = object.roleRef as RoleRef
  const isClusterRole = roleRef.kind === 'ClusterRole'
  if (isAllowed(authorize, user, 'bind', isClusterRole ? 'clusterroles' : 'roles', roleRef.name, namespace)) return
  const rules = rbac.rulesOf(roleRef, namespace)
  // As in Kubernetes, the error names the resource of the request and the name of the role.
  if (!rules) throw notFound({ group: rbacGroup, plural }, roleRef.name)
  requireRules(rbac, write, namespace, rules)
}

function isAllowed(authorize: Authorizer, user: User, verb: string, resource: string, name: string, namespace: string): boolean {
  return authorize({ user, verb, group: rbacGroup, resource, name: name || undefined, namespace: namespace || undefined }) === true
}

function missingRules(rbac: Rbac, user: User, namespace: string, desired: readonly PolicyRule[]): PolicyRule[] {
  return uncoveredRules(rbac.rulesFor(user, namespace).rules, desired)
}

function requireRules(rbac: Rbac, write: RbacWrite, namespace: string, desired: readonly PolicyRule[]): void {
  const { user } = write
  if (exceedsComparisonLimit(rbac.rulesFor(user, namespace).rules, desired)) {
    throw forbidden(write, 'has too many rules to compare with those of the user: split it into several roles')
  }
  const lacking = missingRules(rbac, user, namespace, desired)
  if (lacking.length === 0) return
  const { error } = rbac.rulesFor(user, namespace)
  const who = `user ${JSON.stringify(user.name)} (groups=${quoteAll(user.groups)})`
  const what = `is attempting to grant RBAC permissions not currently held:\n${describeRules(lacking).join('\n')}`
  throw forbidden(write, `${who} ${what}${error ? `; resolution errors: [${error}]` : ''}`)
}

function forbidden({ plural, object }: RbacWrite, reason: string): StatusError {
  const { name } = object.metadata
  return new StatusError('Forbidden', `${plural}.${rbacGroup} ${JSON.stringify(name)} is forbidden: ${reason}`, {
    details: { name, group: rbacGroup, kind: plural },
  })
}

function hasAggregation({ aggregationRule }: KubeObject): boolean {
  return (
    isJsonObject(aggregationRule) && Array.isArray(aggregationRule.clusterRoleSelectors) && aggregationRule.clusterRoleSelectors.length > 0
  )
}

/** A garbage collector may remove finalizers and owner references without holding the rules. */
function changesOnlyGarbageCollectionFields({ metadata: after, ...next }: KubeObject, { metadata: before, ...last }: KubeObject): boolean {
  return equalJson(next, last) && equalJson(withoutGarbageCollectionFields(after), withoutGarbageCollectionFields(before))
}

function withoutGarbageCollectionFields(metadata: ObjectMeta): Partial<ObjectMeta> {
  const { ownerReferences: _, finalizers: __, managedFields: ___, resourceVersion: ____, generation: _____, ...kept } = metadata
  return kept
}
