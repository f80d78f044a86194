import type { Kind, Registry } from '../registry/index.ts'

/** As kube-apiserver prefers them: kubectl takes the first group that has a name, and lists in this order. */
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
  'discovery.k8s.io',
]
const positions = new Map(builtInGroups.map((group, index) => [group, index]))

/** The groups that are served: Kubernetes' own, then those of definitions by name. */
export function sortedGroups({ groups }: Registry): [group: string, versions: ReadonlyMap<string, ReadonlyMap<string, Kind>>][] {
  const placeOf = (group: string) => positions.get(group) ?? builtInGroups.length
  return [...groups].sort(([a], [b]) => placeOf(a) - placeOf(b) || (a < b ? -1 : 1))
}
