import type { Row } from './row.ts'

export const rbacKinds: readonly Row[] = [
  {
    group: 'rbac.authorization.k8s.io',
    kind: 'Role',
    plural: 'roles',
    nameRule: 'pathSegment',
    schema: 'io.k8s.api.rbac.v1.Role',
  },
  {
    group: 'rbac.authorization.k8s.io',
    kind: 'RoleBinding',
    plural: 'rolebindings',
    nameRule: 'pathSegment',
    schema: 'io.k8s.api.rbac.v1.RoleBinding',
  },
  {
    group: 'rbac.authorization.k8s.io',
    kind: 'ClusterRole',
    plural: 'clusterroles',
    cluster: true,
    nameRule: 'pathSegment',
    schema: 'io.k8s.api.rbac.v1.ClusterRole',
  },
  {
    group: 'rbac.authorization.k8s.io',
    kind: 'ClusterRoleBinding',
    plural: 'clusterrolebindings',
    cluster: true,
    nameRule: 'pathSegment',
    schema: 'io.k8s.api.rbac.v1.ClusterRoleBinding',
  },
]
