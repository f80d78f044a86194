import { clusterRole, type Manifest, onOwn, reads } from './rule.ts'

const kinds = ['stacks', 'runs', 'workers', 'workerpools', 'tenants']
const withStatus = kinds.flatMap(kind => [kind, `${kind}/status`])

const aggregateTo = (role: string) => ({ [`rbac.authorization.k8s.io/aggregate-to-${role}`]: 'true' })

/**
 * What Kubernetes' roles `view`, `edit` and `admin` grant on Oarlock's kinds, by aggregation; each includes the one before. A state and a
 * plan contain secret values in plain text, so `edit`, which can read the Secrets of the namespace, cannot read those of an engine.
 */
export const userRoles: readonly Manifest[] = [
  clusterRole('oarlock:view', [onOwn(withStatus, reads), onOwn(['stacks/log'], ['get'])], aggregateTo('view')),
  clusterRole(
    'oarlock:edit',
    [
      onOwn(['stacks'], ['create', 'update', 'patch', 'delete', 'deletecollection']),
      // To cancel a Run and to change its priority; other fields of its spec need `runs/binding` (run-fields.ts).
      onOwn(['runs'], ['update', 'patch', 'delete']),
    ],
    aggregateTo('edit'),
  ),
  clusterRole(
    'oarlock:admin',
    [onOwn(['stacks/state'], ['get', 'update', 'delete']), onOwn(['stacks/plan'], ['get'])],
    aggregateTo('admin'),
  ),
  // Not bound: an administrator binds it to the ServiceAccount of Prometheus.
  clusterRole('oarlock:metrics-reader', [{ nonResourceURLs: ['/metrics'], verbs: ['get'] }]),
]
