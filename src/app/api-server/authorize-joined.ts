import {
  apiGroup,
  isEnded,
  isStartRequested,
  labels,
  outputsSecretName,
  outputsSecretType,
  type Run,
  type StackSpec,
  systemNamespace,
  type Worker,
  workersNamespace,
} from '../../api/index.ts'
import { equalJson, type KubeObject } from '../../kubernetes/object/index.ts'
import type { AdmissionPlugin, Attributes, User } from '../../kubernetes/server/index.ts'
import { hasJoined, joinedPoolOf } from '../worker-identity.ts'

export type JoinedWorkerFacts = {
  /** The stored Run. */
  run(namespace: string | undefined, name: string | undefined): Pick<Run, 'spec' | 'status'> | undefined
  /** The Runs that are assigned to a worker and have not ended. */
  runsOf(worker: string): readonly Run[]
  /** The pool that it joined, from the record of its credential; undefined without one. */
  poolOf(worker: string): string | undefined
  /** The labels that it joined with, without that of its pool; undefined if the record of them is malformed. */
  labelsOf(worker: string): Readonly<Record<string, string>> | undefined
}

/**
 * Allows a joined worker what its own Runs reference, as Kubernetes' Node authorizer does for kubelets. Returns true, or undefined to
 * leave the decision to RBAC, which grants nothing unless an administrator binds a role to the group of the pool.
 */
export function authorizeJoined(attributes: Attributes, worker: string, facts: JoinedWorkerFacts): true | undefined {
  const { user, verb, group, resource, subresource, namespace, name, path, fieldSelector } = attributes
  if (path !== undefined) return undefined
  const isRead = verb === 'get' || verb === 'list' || verb === 'watch'
  const isWrite = verb === 'update' || verb === 'patch' || verb === 'delete'
  const allowIf = (isAllowed: boolean): true | undefined => isAllowed || undefined
  switch (`${resource}.${group}`) {
    case `runs.${apiGroup}`: {
      if (verb === 'list' || verb === 'watch') return allowIf(fieldSelector === `spec.workerName=${worker}`)
      const isOwn = facts.run(namespace, name)?.spec.workerName === worker
      return allowIf(isOwn && (verb === 'get' || (subresource === 'status' && (verb === 'patch' || verb === 'update'))))
    }
    case `workers.${apiGroup}`:
      return allowIf((verb === 'create' && !subresource) || (name === worker && (isRead || isWrite)))
    case `workerpools.${apiGroup}`:
      return allowIf(verb === 'get' && !subresource && name !== undefined && name === (joinedPoolOf(user) ?? facts.poolOf(worker)))
    case 'leases.coordination.k8s.io':
      return allowIf(namespace === systemNamespace && (verb === 'create' || (name === worker && (verb === 'get' || isWrite))))
    case 'secrets.': {
      if (namespace === undefined || namespace === systemNamespace || namespace === workersNamespace || subresource) return undefined
      const runs = facts.runsOf(worker).filter(run => run.metadata.namespace === namespace && !isEnded(run))
      if (verb === 'create') return allowIf(runs.length > 0)
      if (name === undefined) return undefined
      if (runs.some(run => outputsSecretName(run.spec.stackRef.name) === name)) return allowIf(verb === 'get' || isWrite)
      return allowIf(verb === 'get' && runs.some(({ spec }) => referencedSecrets(spec.stack).has(name)))
    }
    case 'configmaps.': {
      if (verb !== 'get' || name === undefined || subresource) return undefined
      const runs = facts.runsOf(worker).filter(run => run.metadata.namespace === namespace && !isEnded(run))
      return allowIf(runs.some(({ spec }) => (spec.stack.variablesFrom ?? []).some(({ configMapRef }) => configMapRef?.name === name)))
    }
    default:
      return undefined
  }
}

/** A Worker that a controller created to request this worker has only the label of its pool: the worker adds those that it joined with. */
const isRequest = (worker: KubeObject | undefined): boolean => worker !== undefined && isStartRequested(worker as Worker)

const withAll = (labels: Readonly<Record<string, string>> = {}, joinedWith: Readonly<Record<string, string>> | undefined) =>
  joinedWith && { ...labels, ...joinedWith }

const isStart = (worker: KubeObject | undefined) => (worker as { spec?: { start?: unknown } } | undefined)?.spec?.start === true

const isDraining = (worker: KubeObject | undefined) => (worker as { spec?: { drain?: unknown } } | undefined)?.spec?.drain === true

const withoutPoolLabel = ({ [labels.pool]: _, ...own }: Readonly<Record<string, string>> = {}): Record<string, string> => own

/** The Secrets that a Run reads. They are named in its copy of the Stack's spec, which is immutable. */
function referencedSecrets(spec: StackSpec): ReadonlySet<string> {
  const names: (string | undefined)[] = [spec.source.git?.secretRef?.name, spec.manifests?.kubeconfigSecretRef?.name]
  for (const { secretKeyRef } of spec.env ?? []) names.push(secretKeyRef?.name)
  for (const { secretRef, stackRef } of spec.variablesFrom ?? []) {
    names.push(secretRef?.name, stackRef && outputsSecretName(stackRef.name))
  }
  return new Set(names.filter(name => name !== undefined))
}

/**
 * Restricts the content of what a joined worker writes, as the admission plugin NodeRestriction of kube-apiserver does. The name of a
 * new object is known only from its body. And a Worker that could change its pool or its labels would get Runs, and with them Secrets,
 * of other workers. A local worker is restricted to Workers and Leases with its own name.
 */
export function workerAdmission(
  workerOf: (user: User) => string | undefined,
  facts: JoinedWorkerFacts,
): ReadonlyMap<string, AdmissionPlugin> {
  const forJoined =
    (check: (worker: string, object: KubeObject, namespace: string) => string | undefined): AdmissionPlugin =>
    ({ user, namespace }, object) => {
      const worker = hasJoined(user) ? workerOf(user) : undefined
      return worker === undefined ? undefined : check(worker, object, namespace)
    }
  const ownName = (worker: string, { metadata }: KubeObject) =>
    metadata.name === worker ? undefined : `worker ${worker} can only write objects with its own name`
  /** Those of local workers, too. The manifests engine may apply Leases in other namespaces. */
  const ownWorker = (worker: string, object: KubeObject, oldObject: KubeObject | undefined) =>
    isStart(object) && !isStart(oldObject) ? `worker ${worker} cannot request the start of a worker` : ownName(worker, object)
  const ownLease: AdmissionPlugin = ({ user, namespace }, object) => {
    const worker = workerOf(user)
    return worker === undefined || (!hasJoined(user) && namespace !== systemNamespace) ? undefined : ownName(worker, object)
  }
  return new Map<string, AdmissionPlugin>([
    [
      `workers.${apiGroup}`,
      ({ user }, object, oldObject) => {
        const worker = workerOf(user)
        if (worker === undefined) return undefined
        const problem = ownWorker(worker, object, oldObject)
        if (problem !== undefined || !hasJoined(user)) return problem
        const pool = joinedPoolOf(user) ?? facts.poolOf(worker)
        if (pool === undefined) return `worker ${worker} has no valid credential: join again`
        const { spec } = object as KubeObject & { spec?: { pool?: unknown } }
        const label = object.metadata.labels?.[labels.pool]
        if (spec?.pool !== pool || (label !== undefined && label !== pool))
          return `worker ${worker} can only be in pool ${pool}, which it joined`
        if (isDraining(oldObject) && !isDraining(object))
          return `worker ${worker} is draining: an administrator can undo that with "oarlock uncordon"`
        // Labels that an administrator has added since must be kept, too.
        const joinedWith = isRequest(oldObject)
          ? withAll(oldObject?.metadata.labels, facts.labelsOf(worker))
          : (oldObject?.metadata.labels ?? facts.labelsOf(worker))
        if (!joinedWith)
          return `the labels of worker ${worker} are malformed in the Secret of its credential: delete the Secret and join again`
        const expected = withoutPoolLabel(joinedWith)
        if (equalJson(withoutPoolLabel(object.metadata.labels), expected)) return undefined
        return `worker ${worker} must have the labels that it joined with: ${JSON.stringify(expected)}`
      },
    ],
    ['leases.coordination.k8s.io', ownLease],
    [
      'secrets',
      forJoined((worker, object, namespace) => {
        const { type } = object as KubeObject & { type?: unknown }
        const isOutputs = facts
          .runsOf(worker)
          .some(run => run.metadata.namespace === namespace && outputsSecretName(run.spec.stackRef.name) === object.metadata.name)
        // The server would put a token of any ServiceAccount of the namespace into a Secret of another type.
        if (isOutputs && type === outputsSecretType) return undefined
        return `worker ${worker} can only write Secrets of type ${outputsSecretType} with the outputs of its own Runs`
      }),
    ],
  ])
}
