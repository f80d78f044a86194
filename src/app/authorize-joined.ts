import { apiGroup, isEnded, labels, outputsSecretName, outputsSecretType, type Run, type StackSpec, systemNamespace } from '../api/index.ts'
import { equalJson, type KubeObject } from '../kubernetes/object/index.ts'
import type { AdmissionPlugin, Attributes, User } from '../kubernetes/server/index.ts'

/** Workers that came with a join token: they run on machines of others, and get what their own Runs need and nothing else. */
export const joinedGroup = 'oarlock:joined-workers'
const poolGroupPrefix = 'oarlock:pool:'

/** Every worker that joined a pool is in this group: RBAC may give it more, such as what its Stacks of engine manifests apply. */
export const poolGroup = (pool: string): string => `${poolGroupPrefix}${pool}`

const poolOf = ({ groups }: User): string | undefined =>
  groups.find(group => group.startsWith(poolGroupPrefix))?.slice(poolGroupPrefix.length)

export type JoinedWorkerFacts = {
  /** The Run as it is stored now. */
  run(namespace: string | undefined, name: string | undefined): Pick<Run, 'spec' | 'status'> | undefined
  /** The Runs that a worker works on, or is about to. */
  runsOf(worker: string): readonly Run[]
  /** The labels that it was admitted with, besides the one of its pool. */
  labelsOf(worker: string): Readonly<Record<string, string>>
}

/**
 * What a worker that joined may do, as Kubernetes' Node authorizer has it for kubelets: what is named by its own Runs. True, or
 * undefined, which leaves it to RBAC; RBAC gives nothing unless an administrator binds a role to the group of its pool.
 */
export function authorizeJoined(attributes: Attributes, worker: string, facts: JoinedWorkerFacts): true | undefined {
  const { user, verb, group, resource, subresource, namespace, name, path, fieldSelector } = attributes
  if (path !== undefined) return undefined
  const isRead = verb === 'get' || verb === 'list' || verb === 'watch'
  const isWrite = verb === 'update' || verb === 'patch' || verb === 'delete'
  const yes = (isAllowed: boolean): true | undefined => isAllowed || undefined
  switch (`${resource}.${group}`) {
    case `runs.${apiGroup}`: {
      if (verb === 'list' || verb === 'watch') return yes(fieldSelector === `spec.workerName=${worker}`)
      const isOwn = facts.run(namespace, name)?.spec.workerName === worker
      return yes(isOwn && (verb === 'get' || (subresource === 'status' && (verb === 'patch' || verb === 'update'))))
    }
    case `workers.${apiGroup}`:
      return yes((verb === 'create' && !subresource) || (name === worker && (isRead || isWrite)))
    case `workerpools.${apiGroup}`:
      return yes(verb === 'get' && !subresource && name === poolOf(user))
    case 'leases.coordination.k8s.io':
      return yes(namespace === systemNamespace && (verb === 'create' || (name === worker && (verb === 'get' || isWrite))))
    case 'secrets.': {
      if (namespace === undefined || namespace === systemNamespace || subresource) return undefined
      const runs = facts.runsOf(worker).filter(run => run.metadata.namespace === namespace && !isEnded(run))
      if (verb === 'create') return yes(runs.length > 0)
      if (name === undefined) return undefined
      if (runs.some(run => outputsSecretName(run.spec.stackRef.name) === name)) return yes(verb === 'get' || isWrite)
      return yes(verb === 'get' && runs.some(({ spec }) => referencedSecrets(spec.stack).has(name)))
    }
    case 'configmaps.': {
      if (verb !== 'get' || name === undefined || subresource) return undefined
      const runs = facts.runsOf(worker).filter(run => run.metadata.namespace === namespace && !isEnded(run))
      return yes(runs.some(({ spec }) => (spec.stack.variablesFrom ?? []).some(({ configMapRef }) => configMapRef?.name === name)))
    }
    default:
      return undefined
  }
}

const isDraining = (worker: KubeObject | undefined) => (worker as { spec?: { drain?: unknown } } | undefined)?.spec?.drain === true

/** Without the label of the pool. */
const withoutPoolLabel = ({ [labels.pool]: _, ...own }: Readonly<Record<string, string>> = {}): Record<string, string> => own

/** The Secrets that a Run reads: each is named in what was frozen when it was made. */
function referencedSecrets(spec: StackSpec): ReadonlySet<string> {
  const names: (string | undefined)[] = [spec.source.git?.secretRef?.name, spec.manifests?.kubeconfigSecretRef?.name]
  for (const { secretKeyRef } of spec.env ?? []) names.push(secretKeyRef?.name)
  for (const { secretRef, stackRef } of spec.variablesFrom ?? []) {
    names.push(secretRef?.name, stackRef && outputsSecretName(stackRef.name))
  }
  return new Set(names.filter(name => name !== undefined))
}

/**
 * What a joined worker may write into the objects that it may write, by table, as the plugin NodeRestriction of kube-apiserver does
 * it: a request to create names its object in its body only, and a Worker that could move to another pool, or choose its labels, would
 * get Runs, and with them Secrets, that are not meant for it.
 */
export function joinedAdmission(
  workerOf: (user: User) => string | undefined,
  facts: JoinedWorkerFacts,
): ReadonlyMap<string, AdmissionPlugin> {
  const forJoined =
    (
      check: (worker: string, user: User, object: KubeObject, namespace: string, before: KubeObject | undefined) => string | undefined,
    ): AdmissionPlugin =>
    ({ user, namespace }, object, before) => {
      const worker = user.groups.includes(joinedGroup) ? workerOf(user) : undefined
      return worker === undefined ? undefined : check(worker, user, object, namespace, before)
    }
  const ownName = (worker: string, { metadata }: KubeObject) =>
    metadata.name === worker ? undefined : `worker ${worker} may write objects of its own name only`
  return new Map<string, AdmissionPlugin>([
    [
      `workers.${apiGroup}`,
      forJoined((worker, user, object, _, before) => {
        const pool = poolOf(user)
        const { spec } = object as KubeObject & { spec?: { pool?: unknown } }
        const label = object.metadata.labels?.[labels.pool]
        if (spec?.pool !== pool || (label !== undefined && label !== pool)) return `worker ${worker} has joined pool ${pool}`
        const wrongName = ownName(worker, object)
        if (wrongName) return wrongName
        if (isDraining(before) && !isDraining(object))
          return `worker ${worker} was told to drain; an administrator can take that back: oarlock uncordon`
        // Those that an administrator gave it later are left alone, too.
        const expected = withoutPoolLabel(before?.metadata.labels ?? facts.labelsOf(worker))
        if (equalJson(withoutPoolLabel(object.metadata.labels), expected)) return undefined
        return `worker ${worker} has joined with the labels ${JSON.stringify(expected)} and cannot have others; its join token says which`
      }),
    ],
    ['leases.coordination.k8s.io', forJoined((worker, _, object) => ownName(worker, object))],
    [
      'secrets',
      forJoined((worker, _, object, namespace) => {
        const { type } = object as KubeObject & { type?: unknown }
        const isOutputs = facts
          .runsOf(worker)
          .some(run => run.metadata.namespace === namespace && outputsSecretName(run.spec.stackRef.name) === object.metadata.name)
        // A Secret of another type may be given a token, by the server itself, for any ServiceAccount of the namespace.
        if (isOutputs && type === outputsSecretType) return undefined
        return `worker ${worker} may write the outputs of the Stacks of its Runs only, as type ${outputsSecretType}`
      }),
    ],
  ])
}
