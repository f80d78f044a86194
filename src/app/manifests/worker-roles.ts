import { podAccountName, systemNamespace, workersNamespace } from '../../api/index.ts'
import { workerAccountsGroup } from '../worker-identity.ts'
import { account, boundRole, clusterRole, clusterRoleBinding, group, type Manifest, on, onOwn, reads, roleBinding, writes } from './rule.ts'

const workers = [group(workerAccountsGroup)]

const podWorkerRole = 'oarlock:pod-worker'
const podWorkerRunsRole = 'oarlock:pod-worker-runs'
const podWorkerLeaseRole = 'oarlock:pod-worker-lease'

/**
 * What every worker may do on a server without Oarlock's authorizer. RBAC cannot select objects by whose they are: the policies do
 * (admission-policies.ts), so these bindings are installed only together with them.
 */
export const workerRoles: readonly Manifest[] = [
  clusterRole(podWorkerRole, [onOwn(['workers'], [...reads, 'patch', 'delete']), onOwn(['workers/status'], ['patch'])]),
  clusterRole(podWorkerRunsRole, [onOwn(['runs'], reads), onOwn(['runs/status'], ['patch'])]),
  clusterRole(podWorkerLeaseRole, [on(['coordination.k8s.io'], ['leases'], ['create', 'patch', 'delete'])]),
  ...podWorkerBindings(systemNamespace),
  clusterRole('oarlock:worker', [
    onOwn(['runs', 'workers'], reads),
    onOwn(['workerpools'], ['get']),
    onOwn(['workers'], writes),
    onOwn(['workers/status', 'runs/status'], ['update', 'patch']),
  ]),
  clusterRoleBinding('oarlock:worker', 'oarlock:worker', workers),
  ...boundRole(systemNamespace, 'oarlock-worker', [on(['coordination.k8s.io'], ['leases'], ['get', ...writes])], workers),
]

/**
 * What worker Pods may do, of which the policies leave them their own (pod-worker-policies.ts).
 * @param namespace of the Pods. @param accountName of the Pods: isPodAccountName (api/names.ts).
 * @param runs `all`: of every namespace; `own`: of the namespace of the Pods. Default: all for those in `oarlock-system`.
 */
export function podWorkerBindings(
  namespace: string,
  accountName: string = podAccountName,
  runs: 'all' | 'own' = namespace === systemNamespace ? 'all' : 'own',
): Manifest[] {
  const subjects = [account(namespace, accountName)]
  const id = `${namespace}:${accountName}`
  return [
    clusterRoleBinding(`${podWorkerRole}:${id}`, podWorkerRole, subjects),
    runs === 'all'
      ? clusterRoleBinding(`${podWorkerRunsRole}:${id}`, podWorkerRunsRole, subjects)
      : roleBinding(namespace, `${accountName}-runs`, podWorkerRunsRole, subjects),
    roleBinding(systemNamespace, `oarlock-worker-lease-${namespace}-${accountName}`, podWorkerLeaseRole, subjects),
  ]
}

/** A worker that joined, with the object that its rights are deleted with. */
export type JoinedWorker = {
  readonly name: string
  readonly owner: { readonly apiVersion: string; readonly kind: string; readonly name: string; readonly uid: string }
  /** All labels that its Worker may have, including that of its pool. */
  readonly labels: Readonly<Record<string, string>>
  /** It may create its Worker: until it has, once. */
  readonly mayRegister: boolean
}

/** The name in RBAC of the right to have a label: the verb `use` on `workers/label` in the namespace of the workers. */
export const labelRight = { subresource: 'label', verb: 'use', nameOf: (key: string, value: string) => `${key}=${value}` } as const

/** The name in RBAC of the right to create one's Worker: the verb `create` on `workers/registration`, with the name of the worker. */
export const registrationRight = { subresource: 'registration', verb: 'create' } as const

/**
 * What the join service grants to one worker: its labels, which decide which Runs it gets, and its registration. A policy cannot read the record of its
 * credential, but it can ask whether its user has a permission.
 */
export function rightsOfWorker({ name, owner, labels, mayRegister }: JoinedWorker): Manifest[] {
  const resourceNames = Object.entries(labels).map(([key, value]) => labelRight.nameOf(key, value))
  const rules = [{ ...onOwn([`workers/${labelRight.subresource}`], [labelRight.verb]), resourceNames }]
  if (mayRegister) rules.push({ ...onOwn([`workers/${registrationRight.subresource}`], [registrationRight.verb]), resourceNames: [name] })
  // The components have Roles in this namespace, too.
  return boundRole(workersNamespace, `worker-${name}`, rules, [account(workersNamespace, name)]).map(manifest => ({
    ...manifest,
    metadata: { ...manifest.metadata, ownerReferences: [owner] },
  }))
}
