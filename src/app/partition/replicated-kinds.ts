import { tenantResource, workerPoolResource } from '../../api/index.ts'
import { clusterKindClasses, partitionResource } from '../../gateway/index.ts'
import { crdResource } from '../../kubernetes/client/index.ts'
import { describeResource, type Resource } from '../../kubernetes/object/index.ts'

/** Kinds that are copied, in the order in which they depend on each other. */
export function replicatedKinds(): Resource<Record<string, unknown>>[] {
  const rbac = { group: 'rbac.authorization.k8s.io', version: 'v1', scope: 'Cluster' } as const
  const kinds = [
    crdResource,
    describeResource({ ...rbac, kind: 'ClusterRole', plural: 'clusterroles' }),
    describeResource({ ...rbac, kind: 'ClusterRoleBinding', plural: 'clusterrolebindings' }),
    describeResource({ group: 'scheduling.k8s.io', version: 'v1', scope: 'Cluster', kind: 'PriorityClass', plural: 'priorityclasses' }),
    describeResource({ group: 'storage.k8s.io', version: 'v1', scope: 'Cluster', kind: 'StorageClass', plural: 'storageclasses' }),
    describeResource({ group: 'networking.k8s.io', version: 'v1', scope: 'Cluster', kind: 'IngressClass', plural: 'ingressclasses' }),
    describeResource({ group: 'storage.k8s.io', version: 'v1', scope: 'Cluster', kind: 'CSIDriver', plural: 'csidrivers' }),
    ...[partitionResource, tenantResource, workerPoolResource],
  ] as unknown as Resource<Record<string, unknown>>[]
  const tables = new Set(kinds.map(({ plural, group }) => `${plural}.${group}`))
  const missing = Object.entries(clusterKindClasses).filter(([table, kindClass]) => kindClass === 'replicated' && !tables.has(table))
  if (missing.length > 0) throw new Error(`bug: ${missing.map(([table]) => table).join(', ')} are not copied`)
  return kinds
}
