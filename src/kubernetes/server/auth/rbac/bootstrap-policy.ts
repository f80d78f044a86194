import type { PolicyRule } from './policy-rule.ts'
import { rbacGroup, type Subject } from './rbac.ts'

/**
 * The part of Kubernetes' bootstrap policy (v1.36) that this server needs: the roles that users bind, and those for `can-i` and discovery.
 */
export type BootstrapClusterRole = {
  readonly name: string
  readonly labels?: Readonly<Record<string, string>>
  readonly rules?: readonly PolicyRule[]
  readonly aggregationRule?: { clusterRoleSelectors: { matchLabels: Record<string, string> }[] }
}

export type BootstrapClusterRoleBinding = { readonly name: string; readonly subjects: readonly Subject[] }

export const bootstrapLabels = { 'kubernetes.io/bootstrapping': 'rbac-defaults' }
/** With the value "false" the object is not reconciled at start. */
export const autoUpdateAnnotation = 'rbac.authorization.kubernetes.io/autoupdate'

const reads = ['get', 'list', 'watch']
const writes = ['create', 'delete', 'deletecollection', 'patch', 'update']
const readsAndWrites = ['create', 'delete', 'deletecollection', 'get', 'list', 'patch', 'update', 'watch']

const on = (verbs: string[], apiGroups: string[], resources: string[]): PolicyRule => ({ verbs, apiGroups, resources: resources.sort() })
const paths = (...nonResourceURLs: string[]): PolicyRule => ({ verbs: ['get'], nonResourceURLs: nonResourceURLs.sort() })
const aggregateTo = (name: string) => ({ [`${rbacGroup}/aggregate-to-${name}`]: 'true' })
const aggregated = (name: string) => ({ clusterRoleSelectors: [{ matchLabels: aggregateTo(name) }] })
const withStatus = (...resources: string[]) => resources.flatMap(resource => [resource, `${resource}/status`])
const withScale = (...resources: string[]) => resources.flatMap(resource => [resource, `${resource}/scale`])

const viewRules: PolicyRule[] = [
  on(
    reads,
    [''],
    [
      ...['configmaps', 'endpoints', 'persistentvolumeclaims', 'persistentvolumeclaims/status', 'pods', 'serviceaccounts'],
      ...withScale('replicationcontrollers'),
      ...withStatus('services'),
    ],
  ),
  on(
    reads,
    [''],
    [
      ...['bindings', 'limitranges', 'namespaces/status', 'pods/log', 'pods/status', 'replicationcontrollers/status'],
      ...withStatus('resourcequotas'),
    ],
  ),
  on(reads, [''], ['namespaces']),
  on(reads, ['', 'events.k8s.io'], ['events']),
  on(reads, ['discovery.k8s.io'], ['endpointslices']),
  on(
    reads,
    ['apps'],
    [
      ...['controllerrevisions', 'daemonsets', 'daemonsets/status'],
      ...withScale('deployments', 'replicasets', 'statefulsets'),
      ...['deployments/status', 'replicasets/status', 'statefulsets/status'],
    ],
  ),
  on(reads, ['autoscaling'], withStatus('horizontalpodautoscalers')),
  on(reads, ['batch'], withStatus('cronjobs', 'jobs')),
  on(
    reads,
    ['extensions'],
    [
      ...withStatus('daemonsets', 'deployments', 'ingresses', 'replicasets'),
      ...['deployments/scale', 'networkpolicies', 'replicasets/scale', 'replicationcontrollers/scale'],
    ],
  ),
  on(reads, ['policy'], withStatus('poddisruptionbudgets')),
  on(reads, ['networking.k8s.io'], [...withStatus('ingresses'), 'networkpolicies']),
  on(reads, ['resource.k8s.io'], [...withStatus('resourceclaims'), 'resourceclaimtemplates']),
]

const intoPods = ['pods/attach', 'pods/exec', 'pods/portforward', 'pods/proxy']

const editRules: PolicyRule[] = [
  on(reads, [''], [...intoPods, 'secrets', 'services/proxy']),
  on(['impersonate'], [''], ['serviceaccounts']),
  on(writes, [''], ['pods', ...intoPods]),
  on(['create'], [''], ['pods/eviction']),
  on(
    writes,
    [''],
    [
      ...['configmaps', 'persistentvolumeclaims', 'secrets', 'serviceaccounts', 'services', 'services/proxy'],
      ...withScale('replicationcontrollers'),
    ],
  ),
  on(['create'], [''], ['serviceaccounts/token']),
  on(writes, ['', 'events.k8s.io'], ['events']),
  on(writes, ['apps'], ['daemonsets', 'deployments/rollback', ...withScale('deployments', 'replicasets', 'statefulsets')]),
  on(writes, ['autoscaling'], ['horizontalpodautoscalers']),
  on(writes, ['batch'], ['cronjobs', 'jobs']),
  on(
    writes,
    ['extensions'],
    [
      ...['daemonsets', 'deployments/rollback', 'ingresses', 'networkpolicies', 'replicationcontrollers/scale'],
      ...withScale('deployments', 'replicasets'),
    ],
  ),
  on(writes, ['policy'], ['poddisruptionbudgets']),
  on(writes, ['networking.k8s.io'], ['ingresses', 'networkpolicies']),
  on(readsAndWrites, ['coordination.k8s.io'], ['leases']),
  on(writes, ['resource.k8s.io'], ['resourceclaims', 'resourceclaimtemplates']),
]

const health = ['/healthz', '/livez', '/readyz']

/** Sorted by name, so that an aggregated role is the same after every start. */
export const bootstrapClusterRoles: readonly BootstrapClusterRole[] = [
  { name: 'admin', aggregationRule: aggregated('admin') },
  {
    name: 'cluster-admin',
    rules: [
      { verbs: ['*'], apiGroups: ['*'], resources: ['*'] },
      { verbs: ['*'], nonResourceURLs: ['*'] },
    ],
  },
  { name: 'edit', labels: aggregateTo('admin'), aggregationRule: aggregated('edit') },
  {
    name: 'system:aggregate-to-admin',
    labels: aggregateTo('admin'),
    rules: [
      on(['create'], ['authorization.k8s.io'], ['localsubjectaccessreviews']),
      on(readsAndWrites, [rbacGroup], ['rolebindings', 'roles']),
    ],
  },
  { name: 'system:aggregate-to-edit', labels: aggregateTo('edit'), rules: editRules },
  { name: 'system:aggregate-to-view', labels: aggregateTo('view'), rules: viewRules },
  {
    name: 'system:auth-delegator',
    rules: [
      on(['create'], ['authentication.k8s.io'], ['tokenreviews']),
      on(['create'], ['authorization.k8s.io'], ['subjectaccessreviews']),
    ],
  },
  {
    name: 'system:basic-user',
    rules: [
      on(['create'], ['authorization.k8s.io'], ['selfsubjectaccessreviews', 'selfsubjectrulesreviews']),
      on(['create'], ['authentication.k8s.io'], ['selfsubjectreviews']),
    ],
  },
  {
    name: 'system:discovery',
    rules: [paths(...health, '/version', '/version/', '/openapi', '/openapi/*', '/api', '/api/*', '/apis', '/apis/*')],
  },
  {
    name: 'system:kubelet-api-admin',
    rules: [
      on(reads, [''], ['nodes']),
      on(['proxy'], [''], ['nodes']),
      on(['*'], [''], ['nodes/log', 'nodes/metrics', 'nodes/proxy', 'nodes/stats']),
    ],
  },
  {
    name: 'system:monitoring',
    rules: [
      paths('/metrics', '/metrics/slis', ...health.flatMap(path => [path, `${path}/*`]), '/flagz', '/statusz'),
      on(['get'], [''], ['nodes/metrics']),
    ],
  },
  { name: 'system:public-info-viewer', rules: [paths(...health, '/version', '/version/')] },
  {
    name: 'system:service-account-issuer-discovery',
    rules: [paths(...['/.well-known/openid-configuration', '/openid/v1/jwks'].flatMap(path => [path, `${path}/`]))],
  },
  { name: 'view', labels: aggregateTo('edit'), aggregationRule: aggregated('view') },
]

const groups = (...names: string[]): Subject[] => names.map(name => ({ kind: 'Group', apiGroup: rbacGroup, name }))

/** As whom the server asks kubelets for logs and streams. */
export const kubeletClientUser = 'kube-apiserver-kubelet-client'

/** Each binds the ClusterRole of its own name. */
export const bootstrapClusterRoleBindings: readonly BootstrapClusterRoleBinding[] = [
  { name: 'cluster-admin', subjects: groups('system:masters') },
  { name: 'system:basic-user', subjects: groups('system:authenticated') },
  { name: 'system:discovery', subjects: groups('system:authenticated') },
  // A kubelet asks the server what the server may do.
  { name: 'system:kubelet-api-admin', subjects: [{ kind: 'User', apiGroup: rbacGroup, name: kubeletClientUser }] },
  { name: 'system:monitoring', subjects: groups('system:monitoring') },
  { name: 'system:public-info-viewer', subjects: groups('system:authenticated', 'system:unauthenticated') },
  { name: 'system:service-account-issuer-discovery', subjects: groups('system:serviceaccounts') },
]
