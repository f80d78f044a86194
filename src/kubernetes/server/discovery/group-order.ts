import type { Kind, Registry } from '../registry/index.ts'

/** In the order of kube-apiserver: for a resource name, kubectl uses the first group that has it, and it lists groups in this order. */
const builtInGroups = [
  '',
  'apps',
  'events.k8s.io',
  'authentication.k8s.io',
  'authorization.k8s.io',
  'autoscaling',
  'batch',
  'networking.k8s.io',
  'policy',
  'rbac.authorization.k8s.io',
  'storage.k8s.io',
  'apiextensions.k8s.io',
  'scheduling.k8s.io',
  'coordination.k8s.io',
  'node.k8s.io',
  'discovery.k8s.io',
]
const positions = new Map(builtInGroups.map((group, index) => [group, index]))

/** The served groups: Kubernetes' own, then the others by name. */
export function sortedGroups({ groups }: Registry): [group: string, versions: ReadonlyMap<string, ReadonlyMap<string, Kind>>][] {
  const placeOf = (group: string) => positions.get(group) ?? builtInGroups.length
  return [...groups].sort(([a], [b]) => placeOf(a) - placeOf(b) || (a < b ? -1 : 1))
}
