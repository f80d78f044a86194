import { apiGroup, assignedFinalizer, isEnded, type Run, runResource } from '../api/index.ts'
import { equalJson, type KubeObject } from '../kubernetes/object/index.ts'
import { type AdmissionPlugin, adminsGroup, type DeletionPlugin } from '../kubernetes/server/index.ts'
import { cancelByDeletionRight, cancelRight, describeRight, hasRight } from './user-rights.ts'

/**
 * Who may write which fields of a Run. Its spec is frozen by the controllers that create and assign it: a user who could change it would
 * run an approved plan with other content, or get the Secrets of a Stack to a worker of their choice. And a user who could create one would
 * name the Stack, whose state its worker then reads and writes, and the epoch, which locks out all later Runs. Users with write access to
 * Runs may change their priority, and cancel them with the permission to update `runs/cancel`. Everything else needs the permission to update
 * `runs/binding`, which only controllers and administrators have. On the embedded server the admission plugin below checks it, on another server a ValidatingAdmissionPolicy
 * (manifests/admission-policies.ts).
 */
const userFields: readonly string[] = ['cancel', 'priority', 'priorityClass']

export const bindingRight = { resource: 'runs', subresource: 'binding', verb: 'update' } as const

/** All fields of a Run's spec that only controllers change. */
export const frozenFields = (): string[] =>
  Object.keys(runResource.schema.properties?.spec?.properties ?? {}).filter(field => !userFields.includes(field))

type Spec = Readonly<Record<string, unknown>>

/** Restricts the spec of a Run on the embedded server. Workers are not affected: they cannot write it at all. */
export const runAdmission: AdmissionPlugin = (request, object, oldObject) => {
  const { user, namespace, subresource, isAllowed } = request
  if (subresource !== '' || user.groups.includes(adminsGroup)) return undefined
  const problem = oldObject ? changeProblem(object, oldObject) : runMessages.create
  const { verb, resource, subresource: right } = bindingRight
  if (problem !== undefined && !isAllowed({ verb, group: apiGroup, resource, subresource: right, namespace })) return problem
  const isCancel = oldObject !== undefined && cancelOf(object) !== cancelOf(oldObject)
  return isCancel && !hasRight(request, cancelRight, object.metadata.name) ? runMessages.cancel : undefined
}

/** Restricts the deletion of Runs on the embedded server: that of one that has not ended interrupts it. */
export const runDeletion: DeletionPlugin = (request, object) =>
  isEnded(object as Run) || hasRight(request, cancelByDeletionRight, object.metadata.name) ? undefined : runMessages.delete

const cancelOf = (object: KubeObject): unknown => (object as Run).spec.cancel

/** The messages of the policies are the same. */
export const runMessages = {
  create: `Runs can be created only with the permission to update ${bindingRight.resource}/${bindingRight.subresource}: "oarlock run" requests one`,
  change: `only ${userFields.join(', ')} of spec can be changed without the permission to update ${bindingRight.resource}/${bindingRight.subresource}`,
  owners: `the owner references of a Run can be changed only with the permission to update ${bindingRight.resource}/${bindingRight.subresource}`,
  cancel: `canceling a Run needs the ${describeRight(cancelRight)}`,
  delete: `deleting an active Run cancels it and needs the ${describeRight(cancelByDeletionRight)}`,
  finalizer: `the finalizer ${assignedFinalizer} can be removed only with the permission to update ${bindingRight.resource}/${bindingRight.subresource}`,
} as const

function changeProblem(object: KubeObject, oldObject: KubeObject): string | undefined {
  const { spec: next = {} } = object as { spec?: Spec }
  const { spec: previous = {} } = oldObject as { spec?: Spec }
  const fields = new Set([...Object.keys(next), ...Object.keys(previous)])
  if ([...fields].some(field => !userFields.includes(field) && !equalJson(next[field], previous[field]))) return runMessages.change
  // The garbage collector would delete the Run together with its owner.
  if (!equalJson(object.metadata.ownerReferences ?? [], oldObject.metadata.ownerReferences ?? [])) return runMessages.owners
  const hadFinalizer = oldObject.metadata.finalizers?.includes(assignedFinalizer)
  return hadFinalizer && !object.metadata.finalizers?.includes(assignedFinalizer) ? runMessages.finalizer : undefined
}
