import { apiGroup, labels, systemNamespace, workersNamespace } from '../../api/index.ts'
import type { KubeObject } from '../../kubernetes/object/index.ts'
import { type AdmissionPlugin, type Attributes, type AuthorizerPlugin, adminsGroup } from '../../kubernetes/server/index.ts'
import { hasJoined, isOwnRightsName, workerOf } from '../worker-identity.ts'
import { authorizeJoined, type JoinedWorkerFacts } from './authorize-joined.ts'

const rbacGroup = 'rbac.authorization.k8s.io'
const reads = ['get', 'list', 'watch']
const writes = ['create', 'update', 'patch', 'delete']

export type AuthorizerFacts = JoinedWorkerFacts & {
  /** The Worker that a Run is assigned to; undefined if it is not assigned, or not in the cache yet. */
  assignedTo(namespace: string | undefined, runName: string | undefined): string | undefined
}

/**
 * Who can do what on the embedded server: administrators everything, local Workers what the rules below allow, Workers that joined from
 * other machines less (`authorize-joined.ts`); RBAC decides about all other users. A user who can write a Stack can run commands as the
 * user of this process, so the rules do not isolate Stacks from each other. They keep a Worker from changing objects that decide about
 * Runs, from the Runs of other Workers, and from reading Secrets in bulk. See docs/security.md.
 */
export function makeAuthorizer(facts: AuthorizerFacts): AuthorizerPlugin {
  return attributes => {
    const { user, group, resource, subresource, namespace, name } = attributes
    if (user.groups.includes(adminsGroup)) return true
    const worker = workerOf(user)
    if (worker === undefined) return undefined
    if (writesOwnRights(attributes)) return 'a worker cannot write a ClusterRoleBinding, nor a role or binding of Oarlock'
    if (hasJoined(user)) return authorizeJoined(attributes, worker, facts)
    if (!allowWorker(attributes, worker)) return 'a worker has no permission for this request'
    if (group === apiGroup && resource === 'runs' && subresource === 'status') {
      // A Run never changes its Worker, so a cached assignment is right. If it is missing, the Run's validation decides by its phase.
      const assigned = facts.assignedTo(namespace, name)
      if (assigned !== undefined && assigned !== worker) return `the Run is assigned to worker ${assigned}`
    }
    return true
  }
}

/** In one are the Leases and join tokens, in the other the identities of workers. */
const isReserved = (namespace: string | undefined) => namespace === systemNamespace || namespace === workersNamespace

/** A create request has its name in the body only, which {@link rightsAdmission} checks. The manifests engine applies no binding in the whole cluster. */
const writesOwnRights = ({ verb, group, resource, name = '' }: Attributes): boolean =>
  group === rbacGroup && !reads.includes(verb) && (resource === 'clusterrolebindings' || isOwnRightsName(name))

/** Rejects changes by workers to what a namespace requires: the engine `manifests` may apply Namespaces, also those of other authors. */
export const namespaceAdmission: AdmissionPlugin = ({ user }, object, oldObject) => {
  const policyOf = (namespace: KubeObject | undefined) => namespace?.metadata.labels?.[labels.approval]
  return workerOf(user) !== undefined && policyOf(object) !== policyOf(oldObject)
    ? `a worker cannot change the label ${labels.approval} of a Namespace`
    : undefined
}

/** Rejects roles and bindings of workers that are named like those of Oarlock. */
export function rightsAdmission(): ReadonlyMap<string, AdmissionPlugin> {
  const plugin: AdmissionPlugin = ({ user }, { metadata: { name } }) =>
    workerOf(user) !== undefined && isOwnRightsName(name)
      ? `a worker cannot write the role or binding ${name}: its name is reserved for Oarlock`
      : undefined
  return new Map(['roles', 'rolebindings', 'clusterroles'].map(plural => [`${plural}.${rbacGroup}`, plugin]))
}

function allowWorker({ verb, group, resource, subresource, namespace, name, path }: Attributes, worker: string): boolean {
  // Discovery is required to apply manifests.
  if (path !== undefined) return verb === 'get' && /^\/(api|apis|openapi|version)(\/|$)/.test(path)
  if (group === apiGroup) return allowOwnKinds(verb, resource, subresource, name, worker)
  if (group === 'coordination.k8s.io' && resource === 'leases' && namespace === systemNamespace) {
    // A create request has its name in the body only, which `workerAdmission` checks. The holder and the resourceVersion protect existing Leases.
    return verb === 'create' || (name === worker && [...reads, ...writes].includes(verb))
  }
  if (group === '' && resource === 'events') return verb === 'create' || verb === 'patch' || verb === 'update' || reads.includes(verb)
  // The rest is for the manifests engine.
  if (isReserved(namespace) || (group === '' && resource === 'namespaces' && isReserved(name))) return false
  if (group === 'apiextensions.k8s.io' && name?.endsWith(`.${apiGroup}`)) return reads.includes(verb)
  // A Worker must not impersonate users or review their permissions.
  if (group === 'authentication.k8s.io' || group === 'authorization.k8s.io') return verb === 'create' && resource.startsWith('selfsubject')
  if (group === '' && resource === 'serviceaccounts' && subresource === 'token') return false
  // Single Secrets by name only: no Worker needs to list them.
  if (group === '' && resource === 'secrets') return verb === 'get' || writes.includes(verb)
  return reads.includes(verb) || writes.includes(verb)
}

function allowOwnKinds(verb: string, resource: string, subresource: string | undefined, name: string | undefined, worker: string): boolean {
  switch (resource) {
    case 'runs':
      return reads.includes(verb) || (subresource === 'status' && (verb === 'patch' || verb === 'update'))
    case 'stacks':
      // Not `stacks/state` and the like: a worker uses the paths of its own Runs.
      return reads.includes(verb) && (subresource === undefined || subresource === 'status')
    case 'workerpools':
      return reads.includes(verb)
    case 'workers':
      return reads.includes(verb) || verb === 'create' || (name === worker && writes.includes(verb))
    default:
      return false
  }
}
