/** Kinds that others depend on come first, as in Helm and kustomize. Kinds in neither list come after `first` and before `last`. */
const first = [
  'Namespace',
  'CustomResourceDefinition',
  'PriorityClass',
  'StorageClass',
  'ResourceQuota',
  'LimitRange',
  'NetworkPolicy',
  'PodDisruptionBudget',
  'ServiceAccount',
  'ClusterRole',
  'ClusterRoleBinding',
  'Role',
  'RoleBinding',
  'Secret',
  'ConfigMap',
  'PersistentVolume',
  'PersistentVolumeClaim',
  'Service',
  'DaemonSet',
  'Pod',
  'ReplicaSet',
  'Deployment',
  'StatefulSet',
  'Job',
  'CronJob',
  'HorizontalPodAutoscaler',
  'Ingress',
]
const last = ['APIService', 'MutatingWebhookConfiguration', 'ValidatingWebhookConfiguration']

/** The rank of a kind: lower ranks are applied earlier and deleted later. */
export function applyRank(kind: string): number {
  const early = first.indexOf(kind)
  if (early >= 0) return early
  const late = last.indexOf(kind)
  return late >= 0 ? first.length + 1 + late : first.length
}

/** Items grouped by the rank of their kind, lowest rank first. */
export function groupByRank<T>(items: readonly T[], kindOf: (item: T) => string): T[][] {
  const groups = Map.groupBy(items, item => applyRank(kindOf(item)))
  return [...groups.entries()].sort(([a], [b]) => a - b).map(([, group]) => group)
}
