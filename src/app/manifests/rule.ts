import { apiGroup } from '../../api/index.ts'

/** A rule of a Role or ClusterRole. */
export type Rule = { apiGroups: string[]; resources: string[]; resourceNames?: string[]; verbs: string[] }
/** For paths that belong to no object. */
export type PathRule = { nonResourceURLs: string[]; verbs: string[] }

export const reads = ['get', 'list', 'watch']
/** What the client library writes with; no deletecollection. */
export const writes = ['create', 'update', 'patch', 'delete']

export const on = (apiGroups: string[], resources: string[], verbs: string[]): Rule => ({ apiGroups, resources, verbs })
export const onOwn = (resources: string[], verbs: string[]): Rule => on([apiGroup], resources, verbs)
export const onCore = (resources: string[], verbs: string[]): Rule => on([''], resources, verbs)

const rbacGroup = 'rbac.authorization.k8s.io'
const rbac = { apiVersion: `${rbacGroup}/v1` } as const

/** An object to apply. */
export type Manifest = {
  readonly apiVersion: string
  readonly kind: string
  readonly metadata: {
    name: string
    namespace?: string
    labels?: Record<string, string>
    annotations?: Record<string, string>
    ownerReferences?: object[]
  }
  readonly [field: string]: unknown
}

export type Subject = { kind: 'Group' | 'User' | 'ServiceAccount'; name: string; namespace?: string; apiGroup?: string }

export const group = (name: string): Subject => ({ kind: 'Group', apiGroup: rbacGroup, name })
export const account = (namespace: string, name: string): Subject => ({ kind: 'ServiceAccount', namespace, name })

export function clusterRole(name: string, rules: Rule[] | PathRule[], labels?: Record<string, string>): Manifest {
  return { ...rbac, kind: 'ClusterRole', metadata: { name, ...(labels && { labels }) }, rules }
}

export function clusterRoleBinding(name: string, role: string, subjects: Subject[]): Manifest {
  const roleRef = { apiGroup: rbacGroup, kind: 'ClusterRole', name: role }
  return { ...rbac, kind: 'ClusterRoleBinding', metadata: { name }, roleRef, subjects }
}

/** Binds a ClusterRole in a namespace. */
export function roleBinding(namespace: string, name: string, role: string, subjects: Subject[]): Manifest {
  const roleRef = { apiGroup: rbacGroup, kind: 'ClusterRole', name: role }
  return { ...rbac, kind: 'RoleBinding', metadata: { name, namespace }, roleRef, subjects }
}

/** A Role and its binding, both of this name. */
export function boundRole(namespace: string, name: string, rules: Rule[], subjects: Subject[]): Manifest[] {
  const metadata = { name, namespace }
  return [
    { ...rbac, kind: 'Role', metadata, rules },
    { ...rbac, kind: 'RoleBinding', metadata, roleRef: { apiGroup: rbacGroup, kind: 'Role', name }, subjects },
  ]
}
