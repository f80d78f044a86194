import { systemNamespace, workersNamespace } from '../../api/index.ts'
import { ownedKinds } from './owned-kinds.ts'

/**
 * Where the objects of a cluster-scoped kind are:
 * - `replicated`: written at the home partition, which copies them to all others. Reads are answered by home.
 * - `owned`: each object is in one partition; lists are merged. Its name is claimed at home first.
 * - `home`: at home only. Every kind that is not in the table.
 */
export type KindClass = 'replicated' | 'owned' | 'home'

/** The one table of this; docs/partitions.md shows it. By plural and group. */
export const clusterKindClasses: Readonly<Record<string, Exclude<KindClass, 'home'>>> = {
  'customresourcedefinitions.apiextensions.k8s.io': 'replicated',
  'clusterroles.rbac.authorization.k8s.io': 'replicated',
  'clusterrolebindings.rbac.authorization.k8s.io': 'replicated',
  'tenants.oarlock.dev': 'replicated',
  'partitions.oarlock.dev': 'replicated',
  'workerpools.oarlock.dev': 'replicated',
  'priorityclasses.scheduling.k8s.io': 'replicated',
  // A server sets the default class of a new PersistentVolumeClaim or Ingress.
  'storageclasses.storage.k8s.io': 'replicated',
  'ingressclasses.networking.k8s.io': 'replicated',
  // A kubelet may request tokens of Pods for the audiences that these name.
  'csidrivers.storage.k8s.io': 'replicated',
  ...Object.fromEntries([...ownedKinds.keys()].map(table => [table, 'owned'] as const)),
}

export const kindClassOf = (table: string): KindClass => clusterKindClasses[table] ?? 'home'

export const nodeLeaseNamespace = 'kube-node-lease'

/** Namespaces that may exist in every partition. The gateway serves those of home, except Leases of Nodes and Workers, and Events about owned objects. */
export const systemNamespaces: readonly string[] = [
  'default',
  nodeLeaseNamespace,
  'kube-public',
  'kube-system',
  systemNamespace,
  workersNamespace,
]

/** Whose Leases are in a system namespace: named as the owned object, and in its partition. */
export const leaseOwners: Readonly<Record<string, string>> = { [nodeLeaseNamespace]: 'nodes', [systemNamespace]: 'workers.oarlock.dev' }
