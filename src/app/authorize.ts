import { apiGroup, systemNamespace } from '../api/index.ts'
import { type Attributes, type AuthorizerPlugin, adminsGroup } from '../kubernetes/server/index.ts'
import { authorizeJoined, type JoinedWorkerFacts, joinedGroup } from './authorize-joined.ts'

export const workersGroup = 'oarlock:workers'
const workerUserPrefix = 'system:oarlock:worker:'

export const workerUserName = (workerName: string) => `${workerUserPrefix}${workerName}`

/** The Worker that a user is, or undefined for anybody else. Name and group must both say so. */
export function workerOf(user: { name: string; groups: readonly string[] } | undefined): string | undefined {
  if (!user?.groups.includes(workersGroup) || !user.name.startsWith(workerUserPrefix)) return undefined
  return user.name.slice(workerUserPrefix.length)
}

const reads = ['get', 'list', 'watch']
const writes = ['create', 'update', 'patch', 'delete']

export type AuthorizerFacts = JoinedWorkerFacts & {
  /** The Worker that a Run is assigned to, as far as is known; undefined when not assigned or not seen yet. */
  assignedTo(namespace: string | undefined, runName: string | undefined): string | undefined
}

/**
 * Who may do what on the embedded server: administrators everything, a Worker what its table says; everyone else is left to RBAC.
 * Workers of other machines have a narrower table of their own, `authorize-joined.ts`. For those of this one, cluster and worker
 * machine are one: whoever may write a Stack may run commands as the user of this process. So the
 * table does not make Stacks safe from each other; it keeps a Worker from what decides about Runs, from the Runs of others, and
 * from reading Secrets in bulk. SECURITY.md says the same in words.
 */
export function makeAuthorizer(facts: AuthorizerFacts): AuthorizerPlugin {
  return attributes => {
    const { user, group, resource, subresource, namespace, name } = attributes
    if (user.groups.includes(adminsGroup)) return true
    const worker = workerOf(user)
    if (worker === undefined) return undefined
    if (user.groups.includes(joinedGroup)) return authorizeJoined(attributes, worker, facts)
    if (!allowWorker(attributes, worker)) return 'a worker may not do that'
    if (group === apiGroup && resource === 'runs' && subresource === 'status') {
      // A Run keeps its Worker for life, so what is known cannot be wrong, only missing: then the Run itself decides, by its phase.
      const assigned = facts.assignedTo(namespace, name)
      if (assigned !== undefined && assigned !== worker) return `the run is assigned to worker ${assigned}`
    }
    return true
  }
}

function allowWorker({ verb, group, resource, subresource, namespace, name, path }: Attributes, worker: string): boolean {
  // Discovery: which kinds there are is needed to apply manifests.
  if (path !== undefined) return verb === 'get' && /^\/(api|apis|openapi|version)(\/|$)/.test(path)
  if (group === apiGroup) return allowOwnKinds(verb, resource, subresource, name, worker)
  if (group === 'coordination.k8s.io' && resource === 'leases' && namespace === systemNamespace) {
    // The name of what is created stands in the body; that a Lease is not taken over is for its holder and resourceVersion to see to.
    return verb === 'create' || (name === worker && [...reads, ...writes].includes(verb))
  }
  if (group === '' && resource === 'events') return verb === 'create' || verb === 'patch' || verb === 'update' || reads.includes(verb)
  // From here on: what the manifests engine applies for a Stack.
  if (namespace === systemNamespace || (group === '' && resource === 'namespaces' && name === systemNamespace)) return false
  if (group === 'apiextensions.k8s.io' && name?.endsWith(`.${apiGroup}`)) return reads.includes(verb)
  // To act as somebody else, or to ask about others, is not a Worker's business.
  if (group === 'authentication.k8s.io' || group === 'authorization.k8s.io') return verb === 'create' && resource.startsWith('selfsubject')
  if (group === '' && resource === 'serviceaccounts' && subresource === 'token') return false
  // One Secret at a time and by name: no Worker needs to see all of them.
  if (group === '' && resource === 'secrets') return verb === 'get' || writes.includes(verb)
  return reads.includes(verb) || writes.includes(verb)
}

function allowOwnKinds(verb: string, resource: string, subresource: string | undefined, name: string | undefined, worker: string): boolean {
  switch (resource) {
    case 'runs':
      return reads.includes(verb) || (subresource === 'status' && (verb === 'patch' || verb === 'update'))
    case 'stacks':
    case 'workerpools':
      return reads.includes(verb)
    case 'workers':
      return reads.includes(verb) || verb === 'create' || (name === worker && writes.includes(verb))
    default:
      return false
  }
}
