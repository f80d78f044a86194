import { systemNamespace, workersNamespace } from '../../api/index.ts'
import { podExtraKeys, podUserPattern, podWorkerMessages, reservedWorkerNames } from '../worker-identity.ts'
import { ownKinds, type Policy, subresource, text } from './policy.ts'

/**
 * Requests with a token of a ServiceAccount of worker Pods, in every namespace: RBAC grants what these policies restrict to some of them only. A
 * token without a Pod has no name of a worker, and every write is rejected.
 */
export const isPodWorker = `request.userInfo.username.matches(${text(podUserPattern)}) && !request.userInfo.username.startsWith(${text(`system:serviceaccount:${workersNamespace}:`)})`

const byPodWorker = { 'by-pod-worker': isPodWorker }
const extra = (key: string) => `request.userInfo.?extra[?${text(key)}].orValue([""])[0]`

/** As `podOf` and `isWorkerOf` (worker-identity.ts). */
const pod = {
  worker: extra(podExtraKeys.name),
  podUid: extra(podExtraKeys.uid),
  podNamespace: 'request.userInfo.username.split(":")[2]',
  hasPod: `variables.worker != "" && variables.podUid != "" && !(variables.worker in ${JSON.stringify(reservedWorkerNames)})`,
}
/** Whether the recorded Pod is that of the user. */
const isPod = (recorded: string) =>
  `${recorded}.hasValue() && ${recorded}.value().namespace == variables.podNamespace && ${recorded}.value().?uid.orValue(variables.podUid) == variables.podUid`
const hasPod = { expression: 'variables.hasPod', message: podWorkerMessages.token }
const isDelete = 'request.operation == "DELETE"'
const same = (field: string, missing: string) =>
  `object.metadata.?${field}.orValue(${missing}) == oldObject.metadata.?${field}.orValue(${missing})`

const ownWorker = (fields: readonly string[]): Policy => ({
  name: 'oarlock-pod-worker-own-worker',
  ...ownKinds,
  resources: ['workers', 'workers/status'],
  operations: ['CREATE', 'UPDATE', 'DELETE'],
  conditions: byPodWorker,
  variables: { ...pod, isUpdate: `request.operation == "UPDATE" && ${subresource} == ""` },
  validations: [
    hasPod,
    { expression: 'request.operation != "CREATE"', message: podWorkerMessages.create },
    {
      expression: `request.operation == "CREATE" || (oldObject.metadata.name == variables.worker && ${isPod('oldObject.spec.?pod')})`,
      message: podWorkerMessages.own,
    },
    {
      expression: `!variables.isUpdate || (${fields.map(field => `object.spec.?${field} == oldObject.spec.?${field}`).join(' && ')})`,
      message: podWorkerMessages.fields,
    },
    {
      expression: `!variables.isUpdate || (object.spec.?pod.namespace == oldObject.spec.?pod.namespace && object.spec.?pod.serviceAccountName == oldObject.spec.?pod.serviceAccountName && (object.spec.?pod.uid == oldObject.spec.?pod.uid || object.spec.?pod.uid.orValue("") == variables.podUid))`,
      message: podWorkerMessages.fields,
    },
    {
      expression: `!variables.isUpdate || (${same('labels', '{}')} && ${same('ownerReferences', '[]')} && ${same('finalizers', '[]')})`,
      message: podWorkerMessages.fields,
    },
  ],
})

const ownLease: Policy = {
  name: 'oarlock-pod-worker-own-lease',
  ...{ group: 'coordination.k8s.io', version: 'v1' },
  resources: ['leases'],
  operations: ['CREATE', 'UPDATE', 'DELETE'],
  conditions: byPodWorker,
  variables: pod,
  validations: [
    hasPod,
    {
      expression: `request.namespace == ${text(systemNamespace)} && (${isDelete} ? oldObject : object).metadata.name == variables.worker`,
      message: podWorkerMessages.lease,
    },
    {
      expression: `(${isDelete} || object.spec.?holderIdentity.orValue("") == variables.podUid) && (oldObject == null || oldObject.spec.?holderIdentity.orValue("") == variables.podUid)`,
      message: podWorkerMessages.lease,
    },
  ],
}

const ownRuns: Policy = {
  name: 'oarlock-pod-worker-own-runs',
  ...ownKinds,
  resources: ['runs', 'runs/status'],
  operations: ['CREATE', 'UPDATE', 'DELETE'],
  conditions: byPodWorker,
  variables: pod,
  validations: [
    hasPod,
    { expression: `${subresource} == "status"`, message: 'a worker can only write the status of a Run' },
    {
      // Of the old object: the assignment that the request found.
      expression: `${subresource} != "status" || (oldObject.spec.?workerName.orValue("") == variables.worker && ${isPod('oldObject.spec.?workerPod')})`,
      message: 'the Run is not assigned to this worker',
    },
  ],
}

/**
 * What RBAC cannot tell about worker Pods, whose ServiceAccount several have in common.
 * @param workerFields all fields of the spec of a Worker.
 */
export const podWorkerPolicies = (workerFields: readonly string[]): readonly Policy[] => [
  ownWorker(workerFields.filter(field => field !== 'pod')),
  ownLease,
  ownRuns,
]
