import { podAccountName, systemNamespace, workersNamespace } from '../../api/index.ts'
import { type EndpointRole, endpointName, endpointRoles } from '../discovery/index.ts'
import { type ComponentName, componentAccount } from '../worker-identity.ts'
import {
  account,
  boundRole,
  clusterRole,
  clusterRoleBinding,
  group,
  type Manifest,
  on,
  onCore,
  onOwn,
  type Rule,
  reads,
  writes,
} from './rule.ts'

/** Tokens and permissions of other users: `system:auth-delegator`. */
const reviews: Rule[] = [
  on(['authentication.k8s.io'], ['tokenreviews'], ['create']),
  on(['authorization.k8s.io'], ['subjectaccessreviews'], ['create']),
]
const leases = on(['coordination.k8s.io'], ['leases'], [...reads, ...writes])
/** `create` with a name allows server-side apply, and no POST. */
const publishEndpoint = (role: EndpointRole): Rule => ({
  ...onCore(['configmaps'], [...reads, 'create', 'patch']),
  resourceNames: [endpointName(role)],
})

/** A role of an installation, and what its ServiceAccount in `oarlock-system` may do in the cluster and in two namespaces. */
type Component = { readonly name: ComponentName; readonly cluster: Rule[]; readonly system?: Rule[]; readonly workers?: Rule[] }

const components: readonly Component[] = [
  {
    name: 'controller',
    cluster: [
      onOwn(['stacks', 'runs', 'workers', 'workerpools', 'tenants'], [...reads, ...writes]),
      // Of Pods that have ended, several at a time.
      onOwn(['workers'], ['deletecollection']),
      onOwn(
        ['stacks', 'runs', 'workers', 'workerpools', 'tenants'].map(kind => `${kind}/status`),
        ['get', 'update', 'patch'],
      ),
      // For owner references with blockOwnerDeletion, where the server checks them.
      onOwn(['stacks/finalizers', 'runs/finalizers'], ['update']),
      // Assigns Runs to workers (run-fields.ts).
      onOwn(['runs/binding', 'runs/cancel'], ['update']),
      // Deletes the states of a deleted Stack.
      onOwn(['stacks/state'], ['delete']),
      // Whether the state of a Stack is missing, older or locked, and nothing of its content.
      onOwn(['stacks/recovery'], ['get']),
      // The inputs of Stacks: changes are detected by the versions of what they reference.
      onCore(['secrets', 'configmaps', 'namespaces'], reads),
      // Workers of pools in mode Pod. Busy ones are not evicted, and get no Runs on cordoned nodes.
      onCore(['pods'], [...reads, 'create', 'delete', 'patch']),
      onCore(['nodes'], reads),
      on(['policy'], ['poddisruptionbudgets'], [...reads, 'create', 'update', 'delete']),
      onCore(['events'], ['create', 'patch']),
      on(['apiextensions.k8s.io'], ['customresourcedefinitions'], ['get']),
      ...reviews,
    ],
    system: [leases, publishEndpoint('queue')],
  },
  {
    name: 'stores',
    cluster: [onOwn(['stacks', 'runs', 'workers'], reads), ...reviews],
    // With a name, `create` allows server-side apply only.
    system: [
      publishEndpoint('stores'),
      { ...on(['coordination.k8s.io'], ['leases'], ['get', 'create', 'update', 'patch']), resourceNames: ['oarlock-stores'] },
    ],
  },
  {
    name: 'join-service',
    cluster: [onOwn(['workerpools', 'workers', 'runs'], reads), ...reviews],
    system: [publishEndpoint('join'), onCore(['secrets'], [...reads, ...writes])],
    workers: [
      onCore(['serviceaccounts', 'secrets'], [...reads, ...writes]),
      onCore(['serviceaccounts/token'], ['create']),
      // Grants each worker its labels. A user who may create tokens in this namespace can act as any worker anyway.
      on(['rbac.authorization.k8s.io'], ['roles', 'rolebindings'], [...reads, ...writes, 'escalate', 'bind']),
    ],
  },
  {
    name: 'pool',
    cluster: [onOwn(['workers', 'workerpools'], reads), onOwn(['workers/status'], ['patch'])],
    // The join token of each worker that it starts, and whether a process without a Worker still has a Lease.
    system: [onCore(['secrets'], ['create']), on(['coordination.k8s.io'], ['leases'], ['get'])],
  },
  {
    // What all users together may see: each sees what their own rights allow. What they do is done with their credentials.
    name: 'console-server',
    cluster: [onOwn(['stacks', 'runs', 'workers', 'workerpools', 'tenants'], reads), onCore(['namespaces'], reads), ...reviews],
    system: [on(['coordination.k8s.io'], ['leases'], reads)],
  },
]

/** What a component uses, by namespace; undefined for the whole cluster. */
export function rulesOf(component: ComponentName): { namespace: string | undefined; rules: readonly Rule[] }[] {
  const found = components.find(({ name }) => name === component)
  return [
    { namespace: undefined, rules: found?.cluster ?? [] },
    { namespace: systemNamespace, rules: found?.system ?? [] },
    { namespace: workersNamespace, rules: found?.workers ?? [] },
  ]
}

/** Every authenticated user may read the addresses of the roles. */
const readEndpoints = boundRole(
  systemNamespace,
  'oarlock-endpoints',
  [{ ...onCore(['configmaps'], ['get']), resourceNames: endpointRoles.map(endpointName) }],
  [group('system:authenticated')],
)

/** And the addresses of partitions, with the authorities of their certificates. */
const readPartitions: readonly Manifest[] = [
  clusterRole('oarlock:partitions', [onOwn(['partitions'], reads)]),
  clusterRoleBinding('oarlock:partitions', 'oarlock:partitions', [group('system:authenticated')]),
]

/**
 * What the stores hand out to the workers of Runs, and the outputs that they store. Not bound in the cluster: an administrator binds it in each
 * namespace with Stacks. The roles of earlier versions, which allowed that to every worker, had another name: a binding of one grants nothing any more.
 */
export const runInputsRole = 'oarlock:run-inputs'

const runInputs = clusterRole(runInputsRole, [
  onCore(['secrets'], ['get', ...writes]),
  onCore(['configmaps'], ['get']),
  // For the owner reference of outputs Secrets, where the server checks it.
  onOwn(['stacks/finalizers'], ['update']),
])

/** For the embedded server, on which every namespace has been allowed always: the stores of `oarlock up` are administrators. */
export const runInputsEverywhere: Manifest = clusterRoleBinding(runInputsRole, runInputsRole, [
  account(systemNamespace, componentAccount('stores')),
])

/** ServiceAccounts, roles and bindings of the processes of an installation whose roles run apart. */
export const componentRoles: readonly Manifest[] = [
  // Of worker Pods: their rights are in worker-roles.ts.
  { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: podAccountName, namespace: systemNamespace } },
  ...readEndpoints,
  ...readPartitions,
  runInputs,
  ...components.flatMap(({ name, cluster, system, workers }) => {
    const own = componentAccount(name)
    const subjects = [account(systemNamespace, own)]
    return [
      { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: own, namespace: systemNamespace } },
      clusterRole(`oarlock:${name}`, cluster),
      clusterRoleBinding(`oarlock:${name}`, `oarlock:${name}`, subjects),
      ...(system ? boundRole(systemNamespace, own, system, subjects) : []),
      ...(workers ? boundRole(workersNamespace, own, workers, subjects) : []),
    ]
  }),
]
