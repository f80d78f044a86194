import { apiGroup, isStartRequested, labels, systemNamespace, type Worker, workerBucketOf, workerResource } from '../../api/index.ts'
import { alreadyExists, equalJson, type KubeObject } from '../../kubernetes/object/index.ts'
import type { AdmissionPlugin, AdmissionRequest, DeletionPlugin } from '../../kubernetes/server/index.ts'
import { namespaceProblem } from '../namespace-deletion.ts'
import { hasJoined, podOf, poolOf, workerOf } from '../worker-identity.ts'
import { isInUse, mayApplyNamespace, mayApplySecret } from './authorize-manifests.ts'
import { podLeaseProblem, podWorkerProblem } from './pod-worker-admission.ts'
import type { WorkerFacts } from './worker-facts.ts'

/** A Worker that a controller created to request this worker has only the label of its pool: the worker adds those that it joined with. */
const isRequest = (worker: KubeObject | undefined): boolean => worker !== undefined && isStartRequested(worker as Worker)

const withAll = (labels: Readonly<Record<string, string>> = {}, joinedWith: Readonly<Record<string, string>> | undefined) =>
  joinedWith && { ...labels, ...joinedWith }

const podSpecOf = (worker: KubeObject | undefined) => (worker as Worker | undefined)?.spec?.pod

const isStart = (worker: KubeObject | undefined) => (worker as { spec?: { start?: unknown } } | undefined)?.spec?.start === true

const isDraining = (worker: KubeObject | undefined) => (worker as { spec?: { drain?: unknown } } | undefined)?.spec?.drain === true

const isCordoned = (worker: KubeObject | undefined) => (worker as { spec?: { cordon?: unknown } } | undefined)?.spec?.cordon === true

/** Its pool is checked separately, and its bucket and its partition are set by the server. */
const withoutOwnLabels = ({
  [labels.pool]: _,
  [labels.workerBucket]: __,
  [labels.partition]: ___,
  ...own
}: Readonly<Record<string, string>> = {}) => own

/**
 * Sets the bucket of a Worker, and of its Lease, in every write: it decides which dispatchers see the worker. Not a worker, which could choose it, and
 * whose version may not know of it.
 */
const inBucket =
  (plugin: AdmissionPlugin): AdmissionPlugin =>
  (request, object, oldObject) => {
    const problem = plugin(request, object, oldObject)
    const { name, namespace, labels: own = {} } = object.metadata
    const isOfWorker = namespace === undefined || (namespace === systemNamespace && own[labels.pool] !== undefined)
    const bucket = workerBucketOf(name)
    if (problem === undefined && request.subresource === '' && isOfWorker && own[labels.workerBucket] !== bucket)
      object.metadata = { ...object.metadata, labels: { ...own, [labels.workerBucket]: bucket } }
    return problem
  }

/** Sets the partition of a Worker in every write, so that users can list and select Workers by it. */
const inPartition = (plugin: AdmissionPlugin, partition: string | undefined): AdmissionPlugin =>
  partition === undefined
    ? plugin
    : (request, object, oldObject) => {
        const problem = plugin(request, object, oldObject)
        const { labels: own = {} } = object.metadata
        if (problem === undefined && request.subresource === '' && own[labels.partition] !== partition)
          object.metadata = { ...object.metadata, labels: { ...own, [labels.partition]: partition } }
        return problem
      }

/**
 * Restricts the content of what a worker writes, as the admission plugin NodeRestriction of kube-apiserver does. The name of a new object
 * is known only from its body. And a Worker that could change its pool or its labels would get Runs, and with them Secrets, of other
 * workers.
 * @param partition the one that this server is; default: it is none, and its Workers do not get the label of one.
 */
export function workerAdmission(facts: WorkerFacts, partition?: string): ReadonlyMap<string, AdmissionPlugin> {
  const byWorker =
    (
      check: (worker: string, object: KubeObject, oldObject: KubeObject | undefined, request: AdmissionRequest) => string | undefined,
    ): AdmissionPlugin =>
    (request, object, oldObject) => {
      const worker = workerOf(request.user)
      return worker === undefined ? undefined : check(worker, object, oldObject, request)
    }
  const ownName = (worker: string, { metadata }: KubeObject) =>
    metadata.name === worker ? undefined : `worker ${worker} can only write objects with its own name`
  /** A worker that created its Worker a second time would lose a drain, a cordon and the labels that an operator has set. */
  const register = (worker: string, { metadata }: KubeObject, isDryRun: boolean): string | undefined => {
    // A retry, after the response to the first request was lost.
    if (facts.hasWorker(worker)) throw alreadyExists({ group: apiGroup, plural: workerResource.plural }, worker)
    if (facts.registeredUid(worker) !== undefined)
      return `worker ${worker} has registered before, and its Worker was deleted: start a new worker, or join again`
    if (!isDryRun) facts.recordRegistration(worker, metadata.uid)
    return undefined
  }
  const ownWorker = byWorker((worker, object, oldObject, request) => {
    const { user, isDryRun } = request
    const own = podOf(user)
    if (own) return podWorkerProblem(request, own, object, oldObject)
    if (!equalJson(podSpecOf(object), podSpecOf(oldObject)) || podSpecOf(oldObject) !== undefined)
      return 'a worker that joined with a token cannot write the Worker of a Pod'
    if (isStart(object) && !isStart(oldObject)) return `worker ${worker} cannot request the start of a worker`
    const problem = ownName(worker, object)
    if (problem !== undefined) return problem
    const pool = poolOf(user) ?? facts.poolOf(worker)
    if (pool === undefined) return `worker ${worker} has no valid credential: join again`
    const { spec } = object as KubeObject & { spec?: { pool?: unknown } }
    const label = object.metadata.labels?.[labels.pool]
    if (spec?.pool !== pool || (label !== undefined && label !== pool))
      return `worker ${worker} can only be in pool ${pool}, which it joined`
    if (isDraining(oldObject) && !isDraining(object))
      return `worker ${worker} is draining: an administrator can undo that with "oarlock uncordon"`
    if (isCordoned(oldObject) && !isCordoned(object))
      return `worker ${worker} is cordoned: an administrator can undo that with "oarlock uncordon"`
    // Labels that an administrator has added since must be kept, too.
    const joinedWith = isRequest(oldObject)
      ? withAll(oldObject?.metadata.labels, facts.labelsOf(worker))
      : (oldObject?.metadata.labels ?? facts.labelsOf(worker))
    if (!joinedWith) return `the labels of worker ${worker} are malformed in the Secret of its credential: delete the Secret and join again`
    const expected = withoutOwnLabels(joinedWith)
    if (equalJson(withoutOwnLabels(object.metadata.labels), expected)) return oldObject ? undefined : register(worker, object, isDryRun)
    return `worker ${worker} must have the labels that it joined with: ${JSON.stringify(expected)}`
  })
  // The manifests engine may apply Leases in other namespaces.
  const ownLease = byWorker((worker, object, oldObject, request) => {
    const { user, namespace } = request
    const own = podOf(user)
    if (own) return podLeaseProblem(request, own, object, oldObject)
    return hasJoined(user) || namespace === systemNamespace ? ownName(worker, object) : undefined
  })
  // The server would put a token of any ServiceAccount of the namespace into a Secret of some types.
  const appliedSecret = byWorker((worker, object, oldObject, { user }) =>
    !hasJoined(user) && mayApplySecret(worker, object, oldObject, facts)
      ? undefined
      : `worker ${worker} can only write Secrets that a Stack of its own Runs has created`,
  )
  const approvalOf = (namespace: KubeObject | undefined) => namespace?.metadata.labels?.[labels.approval]
  const appliedNamespace = byWorker((worker, object, oldObject, { user }) => {
    // It decides about Stacks of other authors, too.
    if (approvalOf(object) !== approvalOf(oldObject)) return `a worker cannot change the label ${labels.approval} of a Namespace`
    // Tenants select Namespaces by them, and require isolation.
    if (
      oldObject &&
      isInUse(worker, object.metadata.name, facts) &&
      !equalJson(object.metadata.labels ?? {}, oldObject.metadata.labels ?? {})
    )
      return `a worker cannot change the labels of the Namespace ${object.metadata.name}, because it contains Stacks: an administrator can`
    // The garbage collector would delete it with its owner.
    if (!equalJson(object.metadata.ownerReferences ?? [], oldObject?.metadata.ownerReferences ?? []))
      return 'a worker cannot change the ownerReferences of a Namespace'
    if (hasJoined(user) || mayApplyNamespace(worker, object, oldObject, facts)) return undefined
    return `worker ${worker} can only change Namespaces that a Stack of its own Runs has created`
  })
  // The name of a new definition is known only from its body.
  const foreignDefinition = byWorker((_, object) => {
    const { group } = (object as KubeObject & { spec?: { group?: unknown } }).spec ?? {}
    if (group !== apiGroup && !String(group).endsWith(`.${apiGroup}`)) return undefined
    return `a worker cannot write CustomResourceDefinitions of group ${group}`
  })
  return new Map<string, AdmissionPlugin>([
    [`workers.${apiGroup}`, inPartition(inBucket(ownWorker), partition)],
    ['leases.coordination.k8s.io', inBucket(ownLease)],
    ['secrets', appliedSecret],
    ['namespaces', appliedNamespace],
    ['customresourcedefinitions.apiextensions.k8s.io', foreignDefinition],
  ])
}

/**
 * Rejects the deletion of a Namespace whose Stacks have resources, and for a worker of one that contains Stacks, whatever its annotations say: they would be deleted with it. And a worker that
 * could delete a Namespace with the label could create it again without. A Stack may have created it before it was labeled.
 */
export function namespaceDeletion(facts: WorkerFacts): DeletionPlugin {
  return ({ user }, namespace) => {
    const { metadata } = namespace
    const worker = workerOf(user)
    if (worker === undefined) return namespaceProblem(namespace, facts.stacksIn(metadata.name))
    if (metadata.labels?.[labels.approval] !== undefined) return `a worker cannot delete a Namespace with the label ${labels.approval}`
    return isInUse(worker, metadata.name, facts) ? 'a worker cannot delete a Namespace that contains Stacks' : undefined
  }
}
