import { systemNamespace, workersNamespace } from '../../api/index.ts'
import { workerAccountsGroup } from '../worker-identity.ts'
import { account, boundRole, clusterRole, clusterRoleBinding, group, type Manifest, on, onCore, onOwn, reads, writes } from './rule.ts'

const workers = [group(workerAccountsGroup)]

/**
 * What every worker may do on a server without Oarlock's authorizer. RBAC cannot select objects by whose they are: the policies do
 * (admission-policies.ts), so these bindings are installed only together with them.
 */
export const workerRoles: readonly Manifest[] = [
  clusterRole('oarlock:worker', [
    onOwn(['runs', 'workers'], reads),
    onOwn(['workerpools'], ['get']),
    onOwn(['workers'], writes),
    onOwn(['workers/status', 'runs/status'], ['update', 'patch']),
    // For the owner reference of outputs Secrets, where the server checks it.
    onOwn(['stacks/finalizers'], ['update']),
  ]),
  clusterRoleBinding('oarlock:worker', 'oarlock:worker', workers),
  ...boundRole(systemNamespace, 'oarlock-worker', [on(['coordination.k8s.io'], ['leases'], ['get', ...writes])], workers),
  // Not bound: an administrator binds it in the namespaces whose Stacks may be executed by workers that joined.
  clusterRole('oarlock:worker-inputs', [onCore(['secrets'], ['get', ...writes]), onCore(['configmaps'], ['get'])]),
]

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
