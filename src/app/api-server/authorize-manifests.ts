import { apiGroup, isEnded, ownerAnnotation, type Run, systemNamespace, workersNamespace } from '../../api/index.ts'
import type { KubeObject } from '../../kubernetes/object/index.ts'
import type { Attributes } from '../../kubernetes/server/index.ts'
import type { WorkerFacts } from './worker-facts.ts'

const tokenSecretType = 'kubernetes.io/service-account-token'

/** In one are the Leases and join tokens, in the other the identities of workers. */
const isReserved = (namespace: string | undefined) => namespace === systemNamespace || namespace === workersNamespace

/** A Run that applies objects to this server with the permissions of its worker: no kubeconfig names another server or user. */
const appliesHere = ({ spec: { stack }, status }: Run): boolean =>
  stack.engine === 'manifests' && stack.manifests?.kubeconfigSecretRef === undefined && !isEnded({ status })

const ownerOf = (object: Pick<KubeObject, 'metadata'> | undefined): string | undefined => object?.metadata.annotations?.[ownerAnnotation]

const isOf = ({ metadata: { namespace }, spec }: Run, object: Pick<KubeObject, 'metadata'> | undefined): boolean =>
  ownerOf(object) === `${namespace}/${spec.stackRef.name}`

/** Kinds that the role `edit` does not cover: a Stack takes none over that it has not created. */
const isAdministrative = ({ group, resource }: Pick<Attributes, 'group' | 'resource'>): boolean =>
  group === 'rbac.authorization.k8s.io' || (group === '' && (resource === 'resourcequotas' || resource === 'limitranges'))

/** A Namespace with Stacks, or with a Run of the worker: its labels decide about all of them, and its deletion deletes them all. */
export const isInUse = (worker: string, namespace: string, facts: WorkerFacts): boolean =>
  facts.hasStacks(namespace) || facts.someRun(worker, ({ metadata }) => metadata.namespace === namespace)

/**
 * What only a local worker may do, and only while it has such a Run: apply the objects of its Stack. `oarlock up` has no other user for
 * that, and the administrator who starts it also starts its workers. A joined worker needs a role, bound to the group of its pool.
 *
 * Objects in the namespace of the Stack and in namespaces that the Stack has created, except those of other Stacks; objects of the cluster
 * that do not exist yet or that the Stack has created; Secrets, rights and quotas only if the Stack has created them. By name, without
 * lists. Objects that belong to no Stack may be changed, because the engine takes them over.
 */
export function authorizeManifests(attributes: Attributes, worker: string, facts: WorkerFacts): true | undefined {
  const { verb, group, resource, subresource, namespace, name, path } = attributes
  const isRead = verb === 'get'
  if (!isRead && !['create', 'update', 'patch', 'delete'].includes(verb)) return undefined
  const mayApply = (): boolean => {
    if (path !== undefined) return isRead && /^\/(api|apis|openapi|version)(\/|$)/.test(path)
    if (subresource || (name === undefined && verb !== 'create')) return false
    if (group === apiGroup || group === 'authentication.k8s.io' || group === 'authorization.k8s.io') return false
    if (isReserved(namespace) || (group === '' && resource === 'namespaces' && isReserved(name))) return false
    if (verb === 'delete' && group === '' && resource === 'namespaces' && name !== undefined && isInUse(worker, name, facts)) return false
    return !(group === 'apiextensions.k8s.io' && name?.endsWith(`.${apiGroup}`) && !isRead)
  }
  if (!mayApply()) return undefined
  const isSecret = group === '' && resource === 'secrets'
  const object = name === undefined ? undefined : facts.stored(group === '' ? resource : `${resource}.${group}`, namespace, name)
  const isAllowed = facts.someRun(worker, run => {
    if (!appliesHere(run)) return false
    if (path !== undefined) return true
    const mayUseObject = object === undefined || isOf(run, object)
    if (namespace === undefined) return isRead || mayUseObject || (isOwnNamespace(run, attributes) && ownerOf(object) === undefined)
    if (namespace !== run.metadata.namespace) {
      // Into one that does not exist, the server writes nothing: a plan reports it.
      const other = facts.stored('namespaces', undefined, namespace)
      if (other !== undefined && !isOf(run, other)) return false
    }
    if (isSecret) return mayUseObject && !isTokenSecret(object)
    return isRead || mayUseObject || (ownerOf(object) === undefined && !isAdministrative(attributes))
  })
  return isAllowed || undefined
}

/** That of the Stack, which it did not create. */
const isOwnNamespace = (run: Run, { group, resource, name }: Pick<Attributes, 'group' | 'resource' | 'name'>): boolean =>
  group === '' && resource === 'namespaces' && name === run.metadata.namespace

const isTokenSecret = (object: KubeObject | undefined) => (object as { type?: unknown } | undefined)?.type === tokenSecretType

/**
 * Whether a worker may write this Secret of a Stack that it applies. Its name and type are known only from the body of a create: the server
 * would put the token of a ServiceAccount into one of type `kubernetes.io/service-account-token`. `oldObject` is checked again, because it
 * may have been created since the authorization.
 */
export const mayApplySecret = (worker: string, object: KubeObject, oldObject: KubeObject | undefined, facts: WorkerFacts): boolean =>
  !isTokenSecret(object) &&
  facts.someRun(worker, run => appliesHere(run) && isOf(run, object) && (oldObject === undefined || isOf(run, oldObject)))

/**
 * Whether a worker may write this Namespace: one that it may annotate as created by its Stack becomes one where it may apply objects.
 * The engine writes this annotation to each.
 */
export const mayApplyNamespace = (worker: string, object: KubeObject, oldObject: KubeObject | undefined, facts: WorkerFacts): boolean =>
  facts.someRun(worker, run => {
    if (!appliesHere(run) || !(isOf(run, object) || (oldObject !== undefined && ownerOf(object) === ownerOf(oldObject)))) return false
    const isOwn = oldObject?.metadata.name === run.metadata.namespace && ownerOf(oldObject) === undefined
    return oldObject === undefined || isOwn || isOf(run, oldObject)
  })
