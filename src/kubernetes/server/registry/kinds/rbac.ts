import {
  equalJson,
  invalidValue,
  type KubeObject,
  type LabelSelectorObject,
  labelSelectorFromObject,
  nameErrors,
  requiredValue,
  type StatusCause,
  unsupportedValue,
} from '../../../object/index.ts'
import { ageColumn, column, creationTimestampText, nameColumn } from '../printer-columns.ts'
import type { KindDeclaration } from './kind-declaration.ts'

const group = 'rbac.authorization.k8s.io'

type RoleRef = { apiGroup?: string; kind?: string; name?: string }
type Subject = { kind?: string; apiGroup?: string; name?: string; namespace?: string }
type Rule = Partial<Record<'apiGroups' | 'resources' | 'resourceNames' | 'nonResourceURLs', string[]>> & { verbs?: string[] | null }

const roleColumns: KindDeclaration['columns'] = [
  nameColumn,
  { ...column('Created At', creationTimestampText, object => object.metadata.creationTimestamp), type: 'date' },
]

export const rbacKinds: readonly KindDeclaration[] = [
  {
    group,
    kind: 'Role',
    plural: 'roles',
    nameRule: 'pathSegment',
    allowCreateOnUpdate: true,
    typeName: 'io.k8s.api.rbac.v1.Role',
    columns: roleColumns,
    validate: object => ruleErrors(object, true),
  },
  {
    group,
    kind: 'RoleBinding',
    plural: 'rolebindings',
    nameRule: 'pathSegment',
    allowCreateOnUpdate: true,
    typeName: 'io.k8s.api.rbac.v1.RoleBinding',
    columns: bindingColumns(
      'roleBinding',
      'RoleRef can reference a Role in the current namespace or a ClusterRole in the global namespace.',
    ),
    prepareForWrite: prepareBinding,
    validate: (object, oldObject) => bindingErrors(object, oldObject, ['Role', 'ClusterRole']),
  },
  {
    group,
    kind: 'ClusterRole',
    plural: 'clusterroles',
    cluster: true,
    nameRule: 'pathSegment',
    allowCreateOnUpdate: true,
    typeName: 'io.k8s.api.rbac.v1.ClusterRole',
    columns: roleColumns,
    validate: object => [...ruleErrors(object, false), ...aggregationErrors(object)],
  },
  {
    group,
    kind: 'ClusterRoleBinding',
    plural: 'clusterrolebindings',
    cluster: true,
    nameRule: 'pathSegment',
    allowCreateOnUpdate: true,
    typeName: 'io.k8s.api.rbac.v1.ClusterRoleBinding',
    columns: bindingColumns('clusterRoleBinding', 'RoleRef can only reference a ClusterRole in the global namespace.'),
    prepareForWrite: prepareBinding,
    validate: (object, oldObject) => bindingErrors(object, oldObject, ['ClusterRole']),
  },
]

function bindingColumns(bindingName: string, roleRefDescription: string): KindDeclaration['columns'] {
  const formatSubjects = (kind: string) => (object: KubeObject) =>
    subjectsOf(object)
      .filter(subject => subject.kind === kind)
      .map(({ name = '', namespace = '' }) => (kind === 'ServiceAccount' ? `${namespace}/${name}` : name))
      .join(', ')
  const roleOf = (object: KubeObject) => {
    const { kind, name } = object.roleRef as RoleRef
    return `${kind}/${name}`
  }
  return [
    nameColumn,
    column('Role', `${roleRefDescription} If the RoleRef cannot be resolved, the Authorizer must return an error.`, roleOf),
    ageColumn,
    column('Users', `Users in the ${bindingName}`, formatSubjects('User'), 1),
    column('Groups', `Groups in the ${bindingName}`, formatSubjects('Group'), 1),
    column('ServiceAccounts', `ServiceAccounts in the ${bindingName}`, formatSubjects('ServiceAccount'), 1),
  ]
}

function subjectsOf({ subjects }: KubeObject): Subject[] {
  return Array.isArray(subjects) ? (subjects as Subject[]) : []
}

/** The API group of users, groups and roles defaults to RBAC's. */
function prepareBinding(binding: KubeObject): void {
  binding.roleRef = withGroup(binding.roleRef as RoleRef)
  if (!Array.isArray(binding.subjects)) return
  binding.subjects = subjectsOf(binding).map(subject =>
    subject.kind === 'User' || subject.kind === 'Group' ? withGroup(subject) : subject,
  )
}

function withGroup<T extends { apiGroup?: string }>(reference: T): T {
  return reference.apiGroup ? reference : { ...reference, apiGroup: group }
}

function ruleErrors({ rules }: KubeObject, isNamespaced: boolean): StatusCause[] {
  if (!Array.isArray(rules)) return []
  return (rules as Rule[]).flatMap((rule, i) => {
    const { apiGroups = [], resources = [], resourceNames = [], nonResourceURLs = [] } = rule
    // A required field that was not sent is null.
    const verbs = rule.verbs ?? []
    const field = `rules[${i}]`
    const causes: StatusCause[] = []
    if (verbs.length === 0) causes.push(requiredValue(`${field}.verbs`, 'verbs must contain at least one value'))
    if (nonResourceURLs.length > 0) {
      const reject = (reason: string) => causes.push(invalidValue(`${field}.nonResourceURLs`, nonResourceURLs, reason))
      if (isNamespaced) reject('namespaced rules cannot apply to non-resource URLs')
      if (apiGroups.length + resources.length + resourceNames.length > 0) {
        reject('rules cannot apply to both regular resources and non-resource URLs')
      }
      return causes
    }
    if (apiGroups.length === 0) causes.push(requiredValue(`${field}.apiGroups`, 'resource rules must supply at least one api group'))
    if (resources.length === 0) causes.push(requiredValue(`${field}.resources`, 'resource rules must supply at least one resource'))
    return causes
  })
}

function aggregationErrors({ aggregationRule }: KubeObject): StatusCause[] {
  if (!aggregationRule) return []
  const clusterRoleSelectors = (aggregationRule as { clusterRoleSelectors?: LabelSelectorObject[] | null }).clusterRoleSelectors ?? []
  const path = 'aggregationRule.clusterRoleSelectors'
  if (clusterRoleSelectors.length === 0) {
    return [requiredValue(path, 'at least one clusterRoleSelector required if aggregationRule is non-nil')]
  }
  return clusterRoleSelectors.flatMap((selector, i) => {
    try {
      labelSelectorFromObject(selector)
      return []
    } catch {
      return [invalidValue(`${path}[${i}]`, null, 'invalid label selector.')]
    }
  })
}

function bindingErrors(binding: KubeObject, oldObject: KubeObject | undefined, roleKinds: readonly string[]): StatusCause[] {
  const { apiGroup, kind = '', name = '' } = binding.roleRef as RoleRef
  const causes: StatusCause[] = []
  if (apiGroup !== group) causes.push(unsupportedValue('roleRef.apiGroup', apiGroup, [group]))
  if (!roleKinds.includes(kind)) causes.push(unsupportedValue('roleRef.kind', kind, roleKinds))
  if (!name) causes.push(requiredValue('roleRef.name'))
  else causes.push(...nameErrors(name, 'pathSegment').map(reason => invalidValue('roleRef.name', name, reason)))
  const isNamespaced = binding.metadata.namespace !== undefined
  causes.push(...subjectsOf(binding).flatMap((subject, i) => subjectErrors(subject, `subjects[${i}]`, isNamespaced)))
  if (oldObject && !equalJson(oldObject.roleRef, binding.roleRef)) {
    // The words of Go, which prints the struct.
    causes.push(invalidValue('roleRef', { APIGroup: apiGroup, Kind: kind, Name: name }, 'cannot change roleRef'))
  }
  return causes
}

function subjectErrors({ kind = '', apiGroup = '', name = '', namespace }: Subject, field: string, isNamespaced: boolean): StatusCause[] {
  const causes = name ? [] : [requiredValue(`${field}.name`)]
  switch (kind) {
    case 'ServiceAccount':
      if (name) causes.push(...nameErrors(name, 'dns1123Subdomain').map(reason => invalidValue(`${field}.name`, name, reason)))
      if (apiGroup) causes.push(unsupportedValue(`${field}.apiGroup`, apiGroup, ['']))
      if (!isNamespaced && !namespace) causes.push(requiredValue(`${field}.namespace`))
      return causes
    case 'User':
    case 'Group':
      if (apiGroup !== group) causes.push(unsupportedValue(`${field}.apiGroup`, apiGroup, [group]))
      return causes
    default:
      return [...causes, unsupportedValue(`${field}.kind`, kind, ['ServiceAccount', 'User', 'Group'])]
  }
}
