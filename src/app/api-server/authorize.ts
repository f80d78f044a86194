import { type AdmissionPlugin, type Attributes, type AuthorizerPlugin, adminsGroup } from '../../kubernetes/server/index.ts'
import { hasJoined, isOwnRightsName, workerOf } from '../worker-identity.ts'
import { authorizeManifests } from './authorize-manifests.ts'
import { authorizeWorker } from './authorize-worker.ts'
import type { WorkerFacts } from './worker-facts.ts'

const rbacGroup = 'rbac.authorization.k8s.io'
const reads = ['get', 'list', 'watch']

/**
 * Who can do what on the embedded server: administrators everything, workers what `authorize-worker.ts` allows and RBAC grants, all other
 * users what RBAC grants. Local workers also apply the objects of their Runs (`authorize-manifests.ts`). See docs/security.md.
 */
export function makeAuthorizer(facts: WorkerFacts): AuthorizerPlugin {
  return attributes => {
    const { user } = attributes
    if (user.groups.includes(adminsGroup)) return true
    const worker = workerOf(user)
    if (worker === undefined) return undefined
    if (writesOwnRights(attributes)) return 'a worker cannot write a ClusterRoleBinding, nor a role or binding of Oarlock'
    return authorizeWorker(attributes, worker, facts) ?? (hasJoined(user) ? undefined : authorizeManifests(attributes, worker, facts))
  }
}

/** A create request has its name in the body only, which {@link rightsAdmission} checks. The manifests engine applies no binding in the whole cluster. */
const writesOwnRights = ({ verb, group, resource, name = '' }: Attributes): boolean =>
  group === rbacGroup && !reads.includes(verb) && (resource === 'clusterrolebindings' || isOwnRightsName(name))

/** Rejects roles and bindings of workers that are named like those of Oarlock. */
export function rightsAdmission(): ReadonlyMap<string, AdmissionPlugin> {
  const plugin: AdmissionPlugin = ({ user }, { metadata: { name } }) =>
    workerOf(user) !== undefined && isOwnRightsName(name)
      ? `a worker cannot write the role or binding ${name}: its name is reserved for Oarlock`
      : undefined
  return new Map(['roles', 'rolebindings', 'clusterroles'].map(plural => [`${plural}.${rbacGroup}`, plugin]))
}
