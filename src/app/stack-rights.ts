import { annotations, apiGroup, approvalPolicyOf, type Stack } from '../api/index.ts'
import { equalJson, type ObjectMeta } from '../kubernetes/object/index.ts'
import type { AdmissionPlugin, AdmissionRequest, DeletionPlugin } from '../kubernetes/server/index.ts'
import { approvalRight, describeRight, destroyRight, hasRight } from './user-rights.ts'

/**
 * Who may do what with a Stack besides writing it: approve its plan, let it apply without approval, destroy its resources. On the embedded
 * server the plugins below check it, and record who approved and who changed the Stack; on another server the policies of
 * `manifests/user-policies.ts` check the same, as far as a policy can.
 */
export const approvalAnnotations: readonly string[] = [annotations.approvedPlan, annotations.approvedBy, annotations.approvedAt]

/** The messages of the policies are the same. */
export const stackMessages = {
  approve: `approving a plan needs the ${describeRight(approvalRight)}`,
  weaken: `changing spec.approval from Manual to Auto needs the ${describeRight(approvalRight)}`,
  otherChange: 'without the permission to update stacks, a user can change only the annotations of an approval',
  approvedBy: `the annotation ${annotations.approvedBy} must be your own user name, which "oarlock approve" and "kubectl auth whoami" know`,
  fourEyesUnsupported: `the namespace requires another user than the author to approve (label oarlock.dev/approval), but this API server cannot record who changed a Stack: only the embedded server can`,
  destroy: `deleting a Stack destroys its resources, which needs the ${describeRight(destroyRight)}; spec.deletion: Orphan keeps them`,
  destroyLater: `changing spec.deletion of a Stack that is being deleted destroys its resources, which needs the ${describeRight(destroyRight)}`,
  owners: `an owner reference lets the deletion of the owner destroy the resources, which needs the ${describeRight(destroyRight)}`,
} as const

/** How many users the annotation `oarlock.dev/changed-by` names, at most. */
const maxChangedBy = 16

export type StackAdmissionFacts = {
  namespaceLabels(namespace: string): Readonly<Record<string, string>> | undefined
  nowMs(): number
}

/** Checks writes of Stacks on the embedded server, and records their users. */
export function stackAdmission(facts: StackAdmissionFacts): AdmissionPlugin {
  return (request, object, oldObject) => {
    if (request.subresource !== '') return undefined
    const write: StackWrite = { request, now: object as Stack, old: oldObject as Stack | undefined }
    const problem = rightsProblem(write) ?? (isApproval(write) ? fourEyesProblem(write, facts) : undefined)
    if (problem === undefined) object.metadata = { ...object.metadata, annotations: recorded(write, facts.nowMs()) } as ObjectMeta
    return problem
  }
}

/** Checks deletions of Stacks on the embedded server. */
export const stackDeletion: DeletionPlugin = (request, object) =>
  (object as Stack).spec.deletion === 'Orphan' || hasRight(request, destroyRight, object.metadata.name) ? undefined : stackMessages.destroy

type StackWrite = { readonly request: AdmissionRequest; readonly now: Stack; readonly old: Stack | undefined }

const annotationOf = (stack: Stack | undefined, key: string): string | undefined => stack?.metadata.annotations?.[key]

/** Removing an approval withdraws it, which needs no right. */
const isApproval = ({ now, old }: StackWrite): boolean =>
  annotationOf(now, annotations.approvedPlan) !== undefined &&
  approvalAnnotations.some(key => annotationOf(now, key) !== annotationOf(old, key))

const isSpecChanged = ({ now, old }: StackWrite): boolean => !old || !equalJson(now.spec, old.spec)

function rightsProblem(write: StackWrite): string | undefined {
  const { request, now, old } = write
  const { name, namespace } = now.metadata
  const needsApprovalRight = isApproval(write)
    ? stackMessages.approve
    : old?.spec.approval === 'Manual' && now.spec.approval !== 'Manual'
      ? stackMessages.weaken
      : undefined
  if (needsApprovalRight && !hasRight(request, approvalRight, name)) return needsApprovalRight
  const mayUpdate = () => request.isAllowed({ verb: 'update', group: apiGroup, resource: 'stacks', namespace: namespace ?? '', name })
  if (old && hasOtherChange(now, old) && !mayUpdate()) return stackMessages.otherChange
  const isDestroyedLater = old?.metadata.deletionTimestamp && old.spec.deletion === 'Orphan' && now.spec.deletion !== 'Orphan'
  const needsDestroyRight = isDestroyedLater
    ? stackMessages.destroyLater
    : equalJson(now.metadata.ownerReferences ?? [], old?.metadata.ownerReferences ?? [])
      ? undefined
      : stackMessages.owners
  return needsDestroyRight && !hasRight(request, destroyRight, name) ? needsDestroyRight : undefined
}

/** Whether anything but an approval is different: the verb `patch` alone is the right of an approver, who needs not be an editor. */
function hasOtherChange(now: Stack, old: Stack): boolean {
  const content = ({ spec, metadata: { labels = {}, finalizers = [], ownerReferences = [], annotations: all = {} } }: Stack) => {
    const others = Object.fromEntries(Object.entries(all).filter(([key]) => !approvalAnnotations.includes(key)))
    return [spec, labels, finalizers, ownerReferences, others]
  }
  return !equalJson(content(now), content(old))
}

function fourEyesProblem(write: StackWrite, facts: StackAdmissionFacts): string | undefined {
  const { request, old } = write
  if (approvalPolicyOf(facts.namespaceLabels(request.namespace)) !== 'FourEyes') return undefined
  const because = `the namespace requires another user to approve (label oarlock.dev/approval): user ${JSON.stringify(request.user.name)}`
  const changedBy = namesIn(annotationOf(old, annotations.changedBy))
  if (changedBy.length === 0 && !isSpecChanged(write)) {
    return 'the namespace requires another user than the author to approve (label oarlock.dev/approval), but it is not recorded who changed this Stack: change its spec, so that its next plan has an author'
  }
  if (isSpecChanged(write) || changedBy.includes(request.user.name)) return `${because} is an author of its spec`
  return annotationOf(old, annotations.requestedBy) === request.user.name ? `${because} requested the Run` : undefined
}

/** The annotations of the object with what the server records. What the client sent for those is discarded. */
function recorded(write: StackWrite, nowMs: number): Record<string, string> {
  const { request, now, old } = write
  const { name: user } = request.user
  const isChanged = isSpecChanged(write)
  const approval = isApproval(write)
    ? { [annotations.approvedBy]: user, [annotations.approvedAt]: new Date(nowMs).toISOString() }
    : annotationOf(now, annotations.approvedPlan) === undefined
      ? { [annotations.approvedBy]: undefined, [annotations.approvedAt]: undefined }
      : {}
  const requestedRun = annotationOf(now, annotations.requestedRun)
  const isRequest = requestedRun !== undefined && requestedRun !== annotationOf(old, annotations.requestedRun)
  const requestedBy = isRequest ? user : isChanged || requestedRun === undefined ? undefined : annotationOf(old, annotations.requestedBy)
  const all = {
    ...now.metadata.annotations,
    ...approval,
    [annotations.requestedBy]: requestedBy,
    [annotations.changedBy]: isChanged ? JSON.stringify(changersOf(old, user)) : annotationOf(old, annotations.changedBy),
  }
  return Object.fromEntries(Object.entries(all).filter((entry): entry is [string, string] => entry[1] !== undefined))
}

/** The authors of the spec: all who changed it after the version that was last applied. A trivial change must not hide who made the one before. */
function changersOf(old: Stack | undefined, user: string): string[] {
  const isApplied = old?.status?.applied !== undefined && old.status.applied.generation === old.metadata.generation
  const before = isApplied ? [] : namesIn(annotationOf(old, annotations.changedBy))
  return [...before.filter(name => name !== user), user].slice(-maxChangedBy)
}

/** The users in the annotation `oarlock.dev/changed-by`; empty where no server has recorded any. */
export function namesIn(annotation: string | undefined): string[] {
  try {
    const names: unknown = JSON.parse(annotation ?? '[]')
    return Array.isArray(names) ? names.filter(name => typeof name === 'string') : []
  } catch {
    return []
  }
}
