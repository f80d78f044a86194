import { clusterRole, type Manifest, onOwn, reads } from './rule.ts'

const kinds = ['stacks', 'runs', 'workers', 'workerpools', 'tenants']
const withStatus = kinds.flatMap(kind => [kind, `${kind}/status`])

const aggregateTo = (role: string) => ({ [`rbac.authorization.k8s.io/aggregate-to-${role}`]: 'true' })

/**
 * What Kubernetes' roles `view`, `edit` and `admin` grant on Oarlock's kinds, by aggregation; each includes the one before. A state contains
 * secret values in plain text, so `edit`, which can read the Secrets of the namespace, cannot read those of an engine. A plan is shown
 * without them (`stacks/plan`); its file, which has them, needs `stacks/state` too.
 */
export const userRoles: readonly Manifest[] = [
  clusterRole('oarlock:view', [onOwn(withStatus, reads), onOwn(['stacks/log', 'stacks/plan'], ['get'])], aggregateTo('view')),
  clusterRole(
    'oarlock:edit',
    [
      onOwn(['stacks'], ['create', 'update', 'patch', 'delete', 'deletecollection']),
      // To change the priority of a Run; other fields of its spec need `runs/binding` (run-fields.ts).
      onOwn(['runs'], ['update', 'patch', 'delete']),
      onOwn(['runs/cancel'], ['update', 'delete']),
    ],
    aggregateTo('edit'),
  ),
  clusterRole(
    'oarlock:admin',
    [
      onOwn(['stacks/state'], ['get', 'update', 'delete']),
      onOwn(['stacks/approval'], ['update']),
      onOwn(['stacks/recovery'], ['get', 'update']),
      onOwn(['stacks/destroy'], ['delete']),
    ],
    aggregateTo('admin'),
  ),
  // Not aggregated: for users who approve, and need not be editors. `patch` without `update` allows no other change (stack-rights.ts).
  clusterRole('oarlock:approver', [
    onOwn(['stacks', 'runs'], reads),
    onOwn(['stacks/log', 'stacks/plan'], ['get']),
    onOwn(['stacks'], ['patch']),
    onOwn(['stacks/approval'], ['update']),
  ]),
  // Not aggregated: for users who destroy, and need not be editors. `patch` without `update` allows them to request and confirm plans of destruction (stack-rights.ts).
  clusterRole('oarlock:destroyer', [
    onOwn(['stacks', 'runs'], reads),
    onOwn(['stacks/log', 'stacks/plan'], ['get']),
    onOwn(['stacks'], ['patch', 'delete']),
    onOwn(['stacks/destroy'], ['delete']),
  ]),
  // Not aggregated: for operators who stop Runs, and need not be editors. With `patch` they can also change the priority of a Run.
  clusterRole('oarlock:canceler', [
    onOwn(['stacks', 'runs'], reads),
    onOwn(['stacks/log'], ['get']),
    onOwn(['runs'], ['patch']),
    onOwn(['runs/cancel'], ['update']),
  ]),
  // Not bound: an administrator binds it to the ServiceAccount of Prometheus.
  clusterRole('oarlock:metrics-reader', [{ nonResourceURLs: ['/metrics'], verbs: ['get'] }]),
]
