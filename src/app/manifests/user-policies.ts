import { annotations, apiGroup, assignedFinalizer, endedPhases, labels, stackResource } from '../../api/index.ts'
import { bindingRight, frozenFields, runMessages } from '../run-fields.ts'
import {
  approvalAnnotations,
  boundByDeletion,
  decisionAnnotations,
  destroyPlanRequest,
  destructionAnnotations,
  rejectionAnnotations,
  stackMessages,
} from '../stack-rights.ts'
import { approvalRight, cancelByDeletionRight, cancelRight, destroyRight, recoveryRight } from '../user-rights.ts'
import { ownKinds, type Policy, text } from './policy.ts'

type CheckedRight = { readonly resource: string; readonly subresource?: string; readonly verb: string }

/** Whether the user has a right in the namespace of the request, or on one object in it. Costs 350,000 of the 1,000,000 units of an expression. */
const isAllowed = ({ resource, subresource: right, verb }: CheckedRight, name?: string): string => {
  const checked = `authorizer.group(${text(apiGroup)}).resource(${text(resource)})${right === undefined ? '' : `.subresource(${text(right)})`}`
  return `${checked}.namespace(request.namespace)${name === undefined ? '' : `.name(${name})`}.check(${text(verb)}).allowed()`
}

const isCreate = 'request.operation == "CREATE"'
const isDelete = 'request.operation == "DELETE"'

/** Whether the annotations of the object and those before differ in no other keys. */
const isSameExcept = (keys: readonly string[]): string => {
  const is = (key: string) => `${key} in ${JSON.stringify(keys)}`
  return `(variables.annotations == variables.oldAnnotations || (variables.annotations.all(key, ${is('key')} || variables.annotations[?key] == variables.oldAnnotations[?key]) && variables.oldAnnotations.all(key, ${is('key')} || key in variables.annotations)))`
}
const nameOf = `(${isDelete} ? oldObject : object).metadata.?name.orValue("")`
const same = (field: string, missing: string) => `object.${field}.orValue(${missing}) == oldObject.${field}.orValue(${missing})`

/** A right on fields, for every user: see run-fields.ts. */
const runFields = (): Policy => ({
  name: 'oarlock-run-fields',
  ...ownKinds,
  resources: ['runs'],
  operations: ['CREATE', 'UPDATE'],
  variables: {
    mayBind: isAllowed(bindingRight),
    isCreate,
  },
  validations: [
    {
      expression: '!variables.isCreate || variables.mayBind',
      message: runMessages.create,
    },
    {
      // Most writes change only what is allowed, and need no check of a permission.
      expression: `variables.isCreate || (${frozenFields()
        .map(field => `object.spec.?${field} == oldObject.spec.?${field}`)
        .join(' && ')}) || variables.mayBind`,
      message: runMessages.change,
    },
    {
      expression: `variables.isCreate || ${same('metadata.?ownerReferences', '[]')} || variables.mayBind`,
      message: runMessages.owners,
    },
    {
      expression: `variables.isCreate || !(${text(assignedFinalizer)} in oldObject.metadata.?finalizers.orValue([])) || ${text(assignedFinalizer)} in object.metadata.?finalizers.orValue([]) || variables.mayBind`,
      message: runMessages.finalizer,
    },
  ],
})

/** See run-fields.ts. Apart from the fields: a deletion has no new object. */
const runCancel: Policy = {
  name: 'oarlock-run-cancel',
  ...ownKinds,
  resources: ['runs'],
  operations: ['UPDATE', 'DELETE'],
  validations: [
    {
      expression: `${isDelete} || object.spec.?cancel == oldObject.spec.?cancel || ${isAllowed(cancelRight, 'oldObject.metadata.name')}`,
      message: runMessages.cancel,
    },
    {
      expression: `!(${isDelete}) || oldObject.?status.phase.orValue("Queued") in ${JSON.stringify(endedPhases)} || ${isAllowed(cancelByDeletionRight, 'oldObject.metadata.name')}`,
      message: runMessages.delete,
    },
  ],
}

/** See stack-rights.ts. */
const stackRights: Policy = {
  name: 'oarlock-stack-rights',
  ...ownKinds,
  resources: ['stacks'],
  operations: ['CREATE', 'UPDATE', 'DELETE'],
  variables: {
    name: nameOf,
    annotations: `${isDelete} ? {} : object.metadata.?annotations.orValue({})`,
    oldAnnotations: 'oldObject == null ? {} : oldObject.metadata.?annotations.orValue({})',
    isUpdate: 'request.operation == "UPDATE"',
    isApproval: `${text(annotations.approvedPlan)} in variables.annotations && ${JSON.stringify(approvalAnnotations)}.exists(key, variables.annotations[?key] != variables.oldAnnotations[?key])`,
    isRejection: `${text(annotations.rejectedPlan)} in variables.annotations && ${JSON.stringify(rejectionAnnotations)}.exists(key, variables.annotations[?key] != variables.oldAnnotations[?key])`,
    isWeaker: `variables.isUpdate && oldObject.spec.?approval.orValue("Auto") == "Manual" && object.spec.?approval.orValue("Auto") != "Manual"`,
    isAcceptance: `variables.isUpdate && oldObject.?status.restored.at.orValue("none") == variables.annotations[?${text(annotations.acceptedRestore)}].orValue("") && variables.annotations[?${text(annotations.acceptedRestore)}] != variables.oldAnnotations[?${text(annotations.acceptedRestore)}]`,
    isAnnotationsOnly: `!variables.isUpdate || (object.spec == oldObject.spec && ${same('metadata.?labels', '{}')} && ${same('metadata.?finalizers', '[]')} && ${same('metadata.?ownerReferences', '[]')})`,
    isOnlyApproval: `!variables.isUpdate || (variables.isAnnotationsOnly && ${isSameExcept(decisionAnnotations)})`,
    isOnlyDestruction: `!variables.isUpdate || (variables.isAnnotationsOnly && ${isSameExcept([...decisionAnnotations, ...destructionAnnotations])} && (variables.annotations[?${text(annotations.requestedRun)}] == variables.oldAnnotations[?${text(annotations.requestedRun)}] || variables.annotations[?${text(annotations.requestedRun)}].orValue("").startsWith(${text(destroyPlanRequest)})))`,
    isBoundChanged: `variables.isUpdate && has(oldObject.metadata.deletionTimestamp) && ${JSON.stringify(boundByDeletion)}.exists(key, variables.annotations[?key] != variables.oldAnnotations[?key])`,
    mayApprove: isAllowed(approvalRight, 'variables.name'),
    mayDestroy: isAllowed(destroyRight, 'variables.name'),
  },
  validations: [
    { expression: '!variables.isApproval || variables.mayApprove', message: stackMessages.approve },
    { expression: '!variables.isRejection || variables.mayApprove', message: stackMessages.reject },
    { expression: '!variables.isWeaker || variables.mayApprove', message: stackMessages.weaken },
    { expression: `!variables.isAcceptance || ${isAllowed(recoveryRight, 'variables.name')}`, message: stackMessages.acceptRestore },
    {
      expression: `!variables.isApproval || variables.annotations[?${text(annotations.approvedBy)}].orValue("") == request.userInfo.username`,
      message: stackMessages.approvedBy,
    },
    {
      // approvalPolicyOf: any other value counts as the strictest policy.
      expression: `!variables.isApproval || namespaceObject.metadata.?labels[?${text(labels.approval)}].orValue("Required") == "Required"`,
      message: stackMessages.fourEyesUnsupported,
    },
    {
      expression: `!variables.isApproval || (variables.isUpdate && oldObject.?status.plan.digest.orValue("") == variables.annotations[${text(annotations.approvedPlan)}] && oldObject.status.plan.generation == object.metadata.generation)`,
      message: stackMessages.notAwaited,
    },
    {
      expression: `!variables.isRejection || variables.annotations[?${text(annotations.rejectedBy)}].orValue("") == request.userInfo.username`,
      message: stackMessages.rejectedBy,
    },
    {
      expression: `!variables.isRejection || (variables.isUpdate && oldObject.?status.plan.digest.orValue("") == variables.annotations[${text(annotations.rejectedPlan)}] && oldObject.status.plan.generation == object.metadata.generation)`,
      message: stackMessages.notAwaited,
    },
    {
      expression:
        '!variables.isApproval || oldObject == null || oldObject.?status.rejection.runName.orValue("") == "" || oldObject.status.rejection.runName != oldObject.?status.plan.runName.orValue("")',
      message: stackMessages.rejected,
    },
    {
      expression: `variables.isOnlyApproval || (variables.isOnlyDestruction && variables.mayDestroy) || ${isAllowed({ resource: 'stacks', verb: 'update' }, 'variables.name')}`,
      message: stackMessages.otherChange,
    },
    { expression: '!variables.isBoundChanged || variables.mayDestroy', message: stackMessages.boundByDeletion },
    {
      expression: `!(${isDelete}) || oldObject.spec.?deletion.orValue("Destroy") == "Orphan" || variables.mayDestroy`,
      message: stackMessages.destroy,
    },
    {
      expression: `!(${isDelete}) || !oldObject.spec.?deletionProtection.orValue(false)`,
      message: stackMessages.protected,
    },
    {
      expression:
        '!variables.isUpdate || !has(oldObject.metadata.deletionTimestamp) || oldObject.spec.?deletion.orValue("Destroy") != "Orphan" || object.spec.?deletion.orValue("Destroy") == "Orphan" || variables.mayDestroy',
      message: stackMessages.destroyLater,
    },
    {
      expression: `${isDelete} || object.metadata.?ownerReferences.orValue([]) == (oldObject == null ? [] : oldObject.metadata.?ownerReferences.orValue([])) || variables.mayDestroy`,
      message: stackMessages.owners,
    },
  ],
}

const importedState = `params.metadata.?annotations[?${text(annotations.importedState)}].hasValue()`
const destroyed = 'params.?status.lastRun.type.orValue("") == "Destroy" && params.?status.lastRun.phase.orValue("") == "Succeeded"'
const lastRunMayWrite = '!(params.?status.lastRun.type.orValue("Plan") in ["Plan"])'

/**
 * As `namespaceProblem` (namespace-deletion.ts): the Stacks of a Namespace are the parameters. Without Stacks, and without their kind, Namespaces are
 * deleted as usual.
 */
const namespaceDeletion: Policy = {
  name: 'oarlock-namespace-deletion',
  ...{ group: '', version: 'v1' },
  resources: ['namespaces'],
  operations: ['DELETE'],
  conditions: { 'not-forced': `oldObject.metadata.?annotations[?${text(annotations.forceDelete)}].orValue("") != "true"` },
  params: { apiVersion: stackResource.apiVersion, kind: stackResource.kind },
  failsOpen: true,
  validations: [
    {
      expression: `!params.spec.?deletionProtection.orValue(false) && (params.spec.?deletion.orValue("Destroy") == "Orphan" || (${destroyed}) || !(${importedState} || params.?status.applied.hasValue() || params.?status.resources.orValue(0) > 0 || params.?status.stateVersion.orValue(0) > 0 || ${lastRunMayWrite}))`,
      message: 'a Stack in it has resources, which cannot be destroyed once it is being deleted',
      messageExpression: `"Stack " + params.metadata.name + ${text(' in it has resources, which cannot be destroyed once it is being deleted. Destroy them first with "oarlock destroy --all -n ')} + params.metadata.namespace + ${text(`", or keep them and delete the namespace regardless, with the annotation ${annotations.forceDelete}: "true" on it`)}`,
    },
  ],
}

/** What a write of users means, where no admission plugin of Oarlock checks them. */
export const userPolicies = (): readonly Policy[] => [runFields(), runCancel, stackRights, namespaceDeletion]
