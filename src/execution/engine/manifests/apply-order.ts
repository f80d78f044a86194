/** What others need comes first: as in Helm and kustomize. Kinds that are not named come after the configuration and before the webhooks. */
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

/** The rank of a kind; a lower one is applied earlier, and deleted later. */
export function applyRank(kind: string): number {
  const early = first.indexOf(kind)
  if (early >= 0) return early
  const late = last.indexOf(kind)
  return late >= 0 ? first.length + 1 + late : first.length
}
