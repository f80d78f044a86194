import { apiGroup, labels, systemNamespace, workerResource, workersNamespace } from '../../api/index.ts'
import { ownRightsPrefixes, reservedWorkerNames, workerAccountPrefix, workerAccountsGroup } from '../worker-identity.ts'
import { isPodWorker, podWorkerPolicies } from './pod-worker-policies.ts'
import { manifestsOf, ownKinds, type Policy, subresource, text } from './policy.ts'
import type { Manifest } from './rule.ts'
import { userPolicies } from './user-policies.ts'
import { labelRight, registrationRight } from './worker-roles.ts'

/** Requests of workers. Their user is a ServiceAccount, so its name is that of the worker. */
const byWorker = { 'by-worker': `${text(workerAccountsGroup)} in request.userInfo.groups` }
/** Also those in Pods, whose user is the ServiceAccount of all of them. */
const byAnyWorker = { 'by-worker': `(${byWorker['by-worker']}) || (${isPodWorker})` }
const worker = { worker: `request.userInfo.username.substring(${workerAccountPrefix.length})` }
const own = {
  own: `!(variables.worker in ${JSON.stringify(reservedWorkerNames)}) && (request.operation == "DELETE" ? oldObject : object).metadata.name == variables.worker`,
}

/**
 * The labels of a Worker that its worker may set itself. Each is a check of a permission, which costs 350,000 units, and Kubernetes limits an
 * expression to 1,000,000 and a policy to 10,000,000.
 */
const maxOwnLabels = 16

const hasRight = ({ subresource, verb }: { subresource: string; verb: string }, name: string) => {
  const right = `authorizer.group(${text(apiGroup)}).resource("workers").subresource(${text(subresource)})`
  return `${right}.namespace(${text(workersNamespace)}).name(${name}).check(${text(verb)}).allowed()`
}

const mayHaveLabel = (key: string) => hasRight(labelRight, `${key} + "=" + variables.labels[${key}]`)

const ownWorker: Policy = {
  name: 'oarlock-worker-own-worker',
  ...ownKinds,
  resources: ['workers', 'workers/status'],
  operations: ['CREATE', 'UPDATE', 'DELETE'],
  conditions: byWorker,
  variables: {
    ...worker,
    ...own,
    isCreate: 'request.operation == "CREATE"',
    isUpdate: `request.operation == "UPDATE" && ${subresource} == ""`,
    labels: 'request.operation == "DELETE" ? {} : object.metadata.?labels.orValue({})',
    oldLabels: 'oldObject == null ? {} : oldObject.metadata.?labels.orValue({})',
    // In another order on every evaluation, which does not matter.
    newLabels:
      'variables.labels.map(key, key).filter(key, !(key in variables.oldLabels) || variables.oldLabels[key] != variables.labels[key])',
    // The controller requested this worker, and it has not registered yet: it may add the labels that it joined with.
    isRequest:
      'oldObject != null && oldObject.spec.?start.orValue(false) && !(oldObject.?status.phase.orValue("") in ["Ready", "Busy", "Draining"])',
  },
  validations: [
    { expression: 'variables.own', message: 'a worker can only write the Worker with its own name' },
    {
      // It would lose a drain, and the labels that an operator has set.
      expression: `!variables.isCreate || ${hasRight(registrationRight, 'variables.worker')}`,
      message: 'a worker can register once: start a new worker, or join again',
    },
    {
      expression: `!variables.isCreate || (${text(labels.pool)} in variables.labels && variables.labels[${text(labels.pool)}] == object.spec.pool)`,
      message: `the label ${labels.pool} must be the pool of the Worker`,
    },
    {
      expression:
        'request.operation == "DELETE" || !object.spec.?start.orValue(false) || (oldObject != null && oldObject.spec.?start.orValue(false))',
      message: 'only the controller can request the start of a worker',
    },
    {
      expression: 'request.operation == "DELETE" || (!has(object.spec.pod) && (oldObject == null || !has(oldObject.spec.pod)))',
      message: 'a worker that joined with a token cannot write the Worker of a Pod',
    },
    {
      expression: '!variables.isUpdate || object.spec.pool == oldObject.spec.pool',
      message: 'a worker cannot change its pool',
    },
    {
      expression: '!variables.isUpdate || variables.oldLabels.all(key, key in variables.labels)',
      message: 'a worker cannot remove labels of its Worker',
    },
    {
      expression: '!variables.isUpdate || variables.isRequest || size(variables.newLabels) == 0',
      message: 'a worker cannot change the labels of its Worker',
    },
    {
      expression: `size(variables.newLabels) <= ${maxOwnLabels}`,
      message: `a worker can set at most ${maxOwnLabels} labels of its Worker`,
    },
    ...Array.from({ length: maxOwnLabels }, (_, index) => ({
      expression: `${subresource} != "" || size(variables.newLabels) <= ${index} || ${mayHaveLabel(`variables.newLabels[${index}]`)}`,
      message: 'a worker can only have the labels that it joined with',
    })),
    {
      expression: '!variables.isUpdate || !oldObject.spec.?drain.orValue(false) || object.spec.?drain.orValue(false)',
      message: 'a draining worker cannot undo that: an administrator can, with "oarlock uncordon"',
    },
    {
      expression: '!variables.isUpdate || !oldObject.spec.?cordon.orValue(false) || object.spec.?cordon.orValue(false)',
      message: 'a cordoned worker cannot undo that: an administrator can, with "oarlock uncordon"',
    },
  ],
}

const ownLease: Policy = {
  name: 'oarlock-worker-own-lease',
  ...{ group: 'coordination.k8s.io', version: 'v1' },
  resources: ['leases'],
  operations: ['CREATE', 'UPDATE', 'DELETE'],
  conditions: byWorker,
  variables: { ...worker, ...own },
  validations: [
    {
      expression: `variables.own && request.namespace == ${text(systemNamespace)}`,
      message: `a worker can only write the Lease with its own name in ${systemNamespace}`,
    },
  ],
}

const ownRuns: Policy = {
  name: 'oarlock-worker-own-runs',
  ...ownKinds,
  resources: ['runs', 'runs/status'],
  operations: ['CREATE', 'UPDATE', 'DELETE'],
  conditions: byWorker,
  variables: worker,
  validations: [
    { expression: `${subresource} == "status"`, message: 'a worker can only write the status of a Run' },
    {
      // Of the old object: the assignment that the request found.
      expression: `${subresource} != "status" || (oldObject.spec.?workerName.orValue("") == variables.worker && !has(oldObject.spec.workerPod))`,
      message: 'the Run is not assigned to this worker',
    },
  ],
}

/** Oarlock grants workers nothing on Secrets. An administrator may grant more on a namespace, for the engine `manifests`: a token would be in a Secret of some types. */
const noSecrets: Policy = {
  name: 'oarlock-worker-secrets',
  ...{ group: '', version: 'v1' },
  resources: ['secrets'],
  operations: ['CREATE', 'UPDATE', 'DELETE'],
  conditions: byAnyWorker,
  validations: [{ expression: 'false', message: 'a worker cannot write Secrets: the stores write the outputs of Stacks' }],
}

/** Oarlock grants workers nothing on these kinds; an administrator may, for the engine `manifests`. */
const ownRights: Policy = {
  name: 'oarlock-worker-rights',
  ...{ group: 'rbac.authorization.k8s.io', version: 'v1' },
  resources: ['roles', 'rolebindings', 'clusterroles', 'clusterrolebindings'],
  operations: ['CREATE', 'UPDATE', 'DELETE'],
  conditions: byAnyWorker,
  variables: { name: '(request.operation == "DELETE" ? oldObject : object).metadata.name' },
  validations: [
    {
      expression: `request.resource.resource != "clusterrolebindings" && !(${ownRightsPrefixes.map(prefix => `variables.name.startsWith(${text(prefix)})`).join(' || ')})`,
      message: 'a worker cannot write a ClusterRoleBinding, nor a role or binding of Oarlock',
    },
  ],
}

/**
 * What Oarlock's authorizer and admission plugins restrict on the embedded server (`../api-server/`), for every other server. A policy sees
 * writes only, and one object at a time: what it cannot tell is in docs/kubernetes.md.
 */
export const admissionPolicies = (): readonly Manifest[] =>
  [ownWorker, ownLease, ownRuns, noSecrets, ownRights, ...podWorkerPolicies(workerFields()), ...userPolicies()].flatMap(manifestsOf)

const workerFields = (): string[] => Object.keys(workerResource.schema.properties?.spec?.properties ?? {})
