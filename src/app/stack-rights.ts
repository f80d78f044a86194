import { annotations, apiGroup, approvalPolicyOf, engineOptionsProblem, oarlockCommand, parseRunRequest, type Stack } from '../api/index.ts'
import { equalJson, type ObjectMeta } from '../kubernetes/object/index.ts'
import type { AdmissionPlugin, AdmissionRequest, DeletionPlugin } from '../kubernetes/server/index.ts'
import { approvalRight, describeRight, destroyRight, hasRight, recoveryRight } from './user-rights.ts'

/**
 * Who may do what with a Stack besides writing it: approve its plan, let it apply without approval, accept its restore, destroy its resources. On the embedded
 * server the plugins below check it, and record who approved and who changed the Stack; on another server the policies of
 * `manifests/user-policies.ts` check the same, as far as a policy can.
 */
export const approvalAnnotations: readonly string[] = [annotations.approvedPlan, annotations.approvedBy, annotations.approvedAt]

/** A rejection of the plan that awaits approval, with the right to approve it. */
export const rejectionAnnotations: readonly string[] = [
  annotations.rejectedPlan,
  annotations.rejectedBy,
  annotations.rejectedAt,
  annotations.rejectionReason,
]

/** What a user changes who decides about a plan without the permission to update the Stack. */
export const decisionAnnotations: readonly string[] = [...approvalAnnotations, ...rejectionAnnotations]

/** What a user who may destroy a Stack changes on it without the permission to update it: `oarlock destroy` requests a plan and confirms it. */
export const destructionAnnotations: readonly string[] = [annotations.destroyPlan, annotations.destroySource, annotations.requestedRun]

/** While the Stack is being deleted they determine what is destroyed. */
export const boundByDeletion: readonly string[] = [annotations.destroyPlan, annotations.destroySource]

/** The value of the annotation `oarlock.dev/requested-run` begins with it. */
export const destroyPlanRequest = 'plan-destroy:'

/** The messages of the policies are the same. */
export const stackMessages = {
  approve: `approving a plan needs the ${describeRight(approvalRight)}`,
  reject: `rejecting a plan needs the ${describeRight(approvalRight)}`,
  notAwaited: 'no plan with this digest awaits approval: "oarlock approve" shows the plan that does, and approves it',
  weaken: `changing spec.approval from Manual to Auto needs the ${describeRight(approvalRight)}`,
  acceptRestore: `accepting the restore of a Stack lets its Runs start again and needs the ${describeRight(recoveryRight)}`,
  otherChange:
    'without the permission to update stacks, a user can change only the annotations of an approval or a rejection, and those of a destruction with the permission for it',
  approvedBy: `the annotation ${annotations.approvedBy} must be your own user name: "oarlock approve" sets it, "kubectl auth whoami" shows it`,
  rejectedBy: `the annotation ${annotations.rejectedBy} must be your own user name: "oarlock reject" sets it, "kubectl auth whoami" shows it`,
  rejected: 'the plan was rejected: "oarlock plan" makes another one',
  fourEyesUnsupported: `the namespace requires another user than the author to approve (label oarlock.dev/approval), but this API server cannot record who changed a Stack: only the embedded server can`,
  destroy: `deleting a Stack destroys its resources and needs the ${describeRight(destroyRight)}; set spec.deletion to Orphan to keep them`,
  boundByDeletion: `changing what the deletion of a Stack destroys (annotations ${boundByDeletion.join(' and ')}) needs the ${describeRight(destroyRight)}`,
  protected: 'spec.deletionProtection of the Stack is true: set it to false to delete the Stack',
  destroyLater: `changing spec.deletion of a Stack that is being deleted destroys its resources and needs the ${describeRight(destroyRight)}`,
  handledRequest: `the request in the annotation ${annotations.requestedRun} was already handled: set another value to request another Run`,
  owners: `with an owner reference, deleting the owner destroys the resources of the Stack, so changing one needs the ${describeRight(destroyRight)}`,
} as const

/** In audit events of approvals, together with the digest of the plan. */
const approvedRunAnnotation = 'oarlock.dev/approved-run'

/** How many authors, and how many users who requested Runs, are recorded by name. One more is recorded, which shows that there were too many. */
const maxNames = 16

export type StackAdmissionFacts = {
  namespaceLabels(namespace: string): Readonly<Record<string, string>> | undefined
  nowMs(): number
}

/** Checks writes of Stacks on the embedded server, and records their users. */
export function stackAdmission(facts: StackAdmissionFacts): AdmissionPlugin {
  return (request, object, oldObject) => {
    if (request.subresource !== '') return undefined
    const write: StackWrite = { request, now: object as Stack, old: oldObject as Stack | undefined }
    const problem = requestProblem(write) ?? rightsProblem(write) ?? fourEyesProblem(write, facts) ?? digestProblem(write)
    if (problem === undefined && isRejection(write))
      request.auditAnnotation(annotations.rejectedPlan, annotationOf(write.now, annotations.rejectedPlan)!)
    if (problem === undefined && isApproval(write)) {
      request.auditAnnotation(annotations.approvedPlan, annotationOf(write.now, annotations.approvedPlan)!)
      request.auditAnnotation(approvedRunAnnotation, write.old!.status!.plan!.runName)
    }
    if (problem === undefined) object.metadata = { ...object.metadata, annotations: recorded(write, facts.nowMs()) } as ObjectMeta
    return problem
  }
}

/** Checks deletions of Stacks on the embedded server, and records their users. */
export const stackDeletion: DeletionPlugin = (request, object) => {
  const { spec, metadata } = object as Stack
  if (spec.deletion !== 'Orphan' && !hasRight(request, destroyRight, metadata.name)) return stackMessages.destroy
  if (spec.deletionProtection) return stackMessages.protected
  const deleters = namesIn(metadata.annotations?.[annotations.deletedBy])
  if (!deleters.includes(request.user.name)) {
    const deletedBy = annotationOfNames(withName(deleters, request.user.name))!
    object.metadata = { ...metadata, annotations: { ...metadata.annotations, [annotations.deletedBy]: deletedBy } }
  }
  return undefined
}

type StackWrite = { readonly request: AdmissionRequest; readonly now: Stack; readonly old: Stack | undefined }

const annotationOf = (stack: Stack | undefined, key: string): string | undefined => stack?.metadata.annotations?.[key]

/** Removing an approval withdraws it, which needs no right. */
const isApproval = ({ now, old }: StackWrite): boolean =>
  annotationOf(now, annotations.approvedPlan) !== undefined &&
  approvalAnnotations.some(key => annotationOf(now, key) !== annotationOf(old, key))

/** Removing a rejection withdraws it, which needs no right: the plan awaits approval again. */
const isRejection = ({ now, old }: StackWrite): boolean =>
  annotationOf(now, annotations.rejectedPlan) !== undefined &&
  rejectionAnnotations.some(key => annotationOf(now, key) !== annotationOf(old, key))

/** Any other value has no effect. */
const isAcceptance = ({ now, old }: StackWrite): boolean => {
  const accepted = annotationOf(now, annotations.acceptedRestore)
  return accepted !== undefined && accepted === old?.status?.restored?.at && accepted !== annotationOf(old, annotations.acceptedRestore)
}

const isSpecChanged = ({ now, old }: StackWrite): boolean => !old || !equalJson(now.spec, old.spec)

/** Whether the write requests a Run. */
function isRequest({ now, old }: StackWrite): boolean {
  const request = annotationOf(now, annotations.requestedRun)
  return request !== undefined && request !== annotationOf(old, annotations.requestedRun)
}

/** Going back to a handled request would make a newer one look handled, while its Run may be about to start. */
function requestProblem(write: StackWrite): string | undefined {
  if (!isRequest(write)) return undefined
  const request = annotationOf(write.now, annotations.requestedRun)
  if (request === write.old?.status?.handledRequest) return stackMessages.handledRequest
  const parsed = parseRunRequest(request ?? '')
  const problem = 'problem' in parsed ? parsed.problem : parsed.options && engineOptionsProblem(write.now.spec.engine, parsed.options)
  return problem === undefined ? undefined : `the request in the annotation ${annotations.requestedRun} is not valid: ${problem}`
}

function rightsProblem(write: StackWrite): string | undefined {
  const { request, now, old } = write
  const { name, namespace } = now.metadata
  const needsApprovalRight = isApproval(write)
    ? stackMessages.approve
    : old?.spec.approval === 'Manual' && now.spec.approval !== 'Manual'
      ? stackMessages.weaken
      : isRejection(write)
        ? stackMessages.reject
        : undefined
  if (needsApprovalRight && !hasRight(request, approvalRight, name)) return needsApprovalRight
  if (isAcceptance(write) && !hasRight(request, recoveryRight, name)) return stackMessages.acceptRestore
  const mayUpdate = () => request.isAllowed({ verb: 'update', group: apiGroup, resource: 'stacks', namespace: namespace ?? '', name })
  const mayDestroy = () => hasRight(request, destroyRight, name)
  const mayChange = () => mayUpdate() || (isDestruction(write) && mayDestroy())
  if (old && hasOtherChange(now, old) && !mayChange()) return stackMessages.otherChange
  const isDestroyedLater = old?.metadata.deletionTimestamp && old.spec.deletion === 'Orphan' && now.spec.deletion !== 'Orphan'
  const needsDestroyRight = isDestroyedLater
    ? stackMessages.destroyLater
    : old?.metadata.deletionTimestamp && boundByDeletion.some(key => annotationOf(now, key) !== annotationOf(old, key))
      ? stackMessages.boundByDeletion
      : equalJson(now.metadata.ownerReferences ?? [], old?.metadata.ownerReferences ?? [])
        ? undefined
        : stackMessages.owners
  return needsDestroyRight && !mayDestroy() ? needsDestroyRight : undefined
}

/** Whether the write changes only what `oarlock destroy` changes, besides an approval, and requests no Run but a plan of destruction. */
function isDestruction(write: StackWrite): boolean {
  const { now, old } = write
  const allowed = [...decisionAnnotations, ...destructionAnnotations]
  return (
    !hasOtherChange(now, old!, allowed) &&
    (!isRequest(write) || annotationOf(now, annotations.requestedRun)!.startsWith(destroyPlanRequest))
  )
}

/** Whether anything but an approval or a rejection, or other annotations, is different: the verb `patch` alone is the right of an approver, who needs not be an editor. */
function hasOtherChange(now: Stack, old: Stack, allowed = decisionAnnotations): boolean {
  const content = ({ spec, metadata: { labels = {}, finalizers = [], ownerReferences = [], annotations: all = {} } }: Stack) => {
    const others = Object.fromEntries(Object.entries(all).filter(([key]) => !allowed.includes(key)))
    return [spec, labels, finalizers, ownerReferences, others]
  }
  return !equalJson(content(now), content(old))
}

/** An approval or a rejection of anything but the plan that awaits approval would be void. A plan of an earlier generation is void, too. */
function digestProblem(write: StackWrite): string | undefined {
  const decision = isApproval(write) ? annotations.approvedPlan : isRejection(write) ? annotations.rejectedPlan : undefined
  if (decision === undefined) return undefined
  const { now, old } = write
  const { plan, rejection } = old?.status ?? {}
  const isAwaited = plan !== undefined && plan.generation === (old?.metadata.generation ?? 1) && !isSpecChanged(write)
  const digest = annotationOf(now, decision)
  if (isAwaited && plan.digest === digest) {
    const isRejected = decision === annotations.approvedPlan && rejection?.runName === plan.runName
    return isRejected ? `plan ${formatDigest(digest)} was rejected: "${oarlockCommand('plan', now.metadata)}" makes another one` : undefined
  }
  const rejected = `plan ${formatDigest(digest)} does not await approval`
  return isAwaited
    ? `${rejected}: plan ${formatDigest(plan.digest)} of Run ${plan.runName} does; "${oarlockCommand('approve', now.metadata)}" shows and approves it`
    : `${rejected}, and no other plan of this Stack does: "${oarlockCommand('describe stack', now.metadata)}" shows its state`
}

/** As a user typed it, but bounded. */
const formatDigest = (digest = '') => JSON.stringify(digest.slice(0, 80))

function fourEyesProblem(write: StackWrite, facts: StackAdmissionFacts): string | undefined {
  const { request, old } = write
  if (approvalPolicyOf(facts.namespaceLabels(request.namespace)) !== 'FourEyes') return undefined
  const isDeleting = old?.metadata.deletionTimestamp !== undefined
  const deleters = deletersOf(write)
  // What is destroyed does not follow from the present spec, unless that is requested.
  const isOfSpec = !isDeleting || annotationOf(old, annotations.destroySource) !== undefined
  const authors = isOfSpec ? authorsOf(write) : []
  const requesters = requestersOf(write)
  const isFull = [authors, requesters, deleters].some(({ length }) => length > maxNames)
  if (!isApproval(write))
    return isFull && (isSpecChanged(write) || isRequest(write)) ? tooManyMessage('approve or apply its plan first') : undefined
  if (isDeleting && deleters.length === 0) {
    return `the namespace requires another user than the one who deleted the Stack to approve (label oarlock.dev/approval), but that user is not recorded: delete it again with "${oarlockCommand('delete stack', write.now.metadata)}"`
  }
  if (old && !isDeleting && authors.length === 0) {
    return 'the namespace requires another user than the author to approve (label oarlock.dev/approval), but the author of this Stack is not recorded: change its spec, so that its next plan has an author'
  }
  if (isFull) return tooManyMessage('let an administrator apply it without this label')
  const { name } = request.user
  const because = deleters.includes(name)
    ? 'deleted the Stack, or changed it since'
    : authors.includes(name)
      ? 'is an author of its spec'
      : requesters.includes(name)
        ? 'requested the Run'
        : undefined
  if (because === undefined) return undefined
  const excluded = [...new Set([...deleters, ...authors, ...requesters])].map(user => JSON.stringify(user)).join(', ')
  const remedy = `ask a user other than ${excluded} with the ${describeRight(approvalRight)}, to run "${oarlockCommand('approve', write.now.metadata)}"`
  return `the namespace requires another user to approve (label oarlock.dev/approval), and user ${JSON.stringify(name)} ${because}: ${remedy}`
}

const tooManyMessage = (remedy: string) =>
  `the namespace requires another user to approve (label oarlock.dev/approval), and more than ${maxNames} users changed this Stack or requested its Runs: ${remedy}`

/** The annotations of the object with what the server records. What the client sent for those is discarded. */
function recorded(write: StackWrite, nowMs: number): Record<string, string> {
  const { request, now } = write
  const { name: user } = request.user
  const approval = isApproval(write)
    ? { [annotations.approvedBy]: user, [annotations.approvedAt]: new Date(nowMs).toISOString() }
    : annotationOf(now, annotations.approvedPlan) === undefined
      ? { [annotations.approvedBy]: undefined, [annotations.approvedAt]: undefined }
      : {}
  const rejection = isRejection(write)
    ? { [annotations.rejectedBy]: user, [annotations.rejectedAt]: new Date(nowMs).toISOString() }
    : annotationOf(now, annotations.rejectedPlan) === undefined
      ? { [annotations.rejectedBy]: undefined, [annotations.rejectedAt]: undefined, [annotations.rejectionReason]: undefined }
      : {}
  const all = {
    ...now.metadata.annotations,
    ...approval,
    ...rejection,
    [annotations.requestedBy]: annotationOfNames(requestersOf(write)),
    [annotations.changedBy]: annotationOfNames(authorsOf(write)),
    [annotations.deletedBy]: annotationOfNames(deletersOf(write)),
  }
  return Object.fromEntries(Object.entries(all).filter((entry): entry is [string, string] => entry[1] !== undefined))
}

const annotationOfNames = (names: readonly string[]): string | undefined => (names.length === 0 ? undefined : JSON.stringify(names))

/** The first names remain, so that no one leaves the list because others follow. */
const withName = (names: readonly string[], user: string): string[] => [...names.filter(name => name !== user), user].slice(0, maxNames + 1)

/** The authors of the spec: all who changed it after the version that was last applied. A trivial change must not hide who made the one before. */
function authorsOf(write: StackWrite): string[] {
  const { request, old } = write
  const before = namesIn(annotationOf(old, annotations.changedBy))
  return isSpecChanged(write) ? withName(isGenerationApplied(old) ? [] : before, request.user.name) : before
}

/** All who deleted the Stack, and all whose changes since then decide what is destroyed. */
function deletersOf({ request, now, old }: StackWrite): string[] {
  const before = namesIn(annotationOf(old, annotations.deletedBy))
  if (!old?.metadata.deletionTimestamp) return before
  const isChanged = !equalJson(now.spec, old.spec) || boundByDeletion.some(key => annotationOf(now, key) !== annotationOf(old, key))
  return isChanged ? withName(before, request.user.name) : before
}

/**
 * All who requested a Run whose plan may still be approved. Removing the annotation of the request, or another request, does not withdraw
 * a Run that may have started.
 */
function requestersOf(write: StackWrite): string[] {
  const { request, old } = write
  const names = namesIn(annotationOf(old, annotations.requestedBy))
  // A plan of an earlier generation is void.
  const isPast = (isRequest(write) && isSettled(old)) || (isSpecChanged(write) && isGenerationApplied(old) && !hasPendingRequest(old))
  const before = isPast ? [] : names
  return isRequest(write) ? withName(before, request.user.name) : before
}

const isGenerationApplied = (stack: Stack | undefined): boolean =>
  stack?.status?.applied !== undefined && stack.status.applied.generation === stack.metadata.generation

function hasPendingRequest(stack: Stack | undefined): boolean {
  const request = annotationOf(stack, annotations.requestedRun)
  return request !== undefined && request !== stack?.status?.handledRequest
}

/**
 * Whether the last request was handled and no plan of it remains. Without the annotation this is unknown: its Run may be about to start.
 * A Run that did not succeed may be repeated.
 */
function isSettled(stack: Stack | undefined): boolean {
  const { lastRun, plan } = stack?.status ?? {}
  const isHandled = annotationOf(stack, annotations.requestedRun) !== undefined && !hasPendingRequest(stack)
  return isHandled && plan === undefined && lastRun?.phase === 'Succeeded'
}

/** The users in an annotation such as `oarlock.dev/changed-by`; empty where no server has recorded any. */
export function namesIn(annotation: string | undefined): string[] {
  try {
    const names: unknown = JSON.parse(annotation ?? '[]')
    return Array.isArray(names) ? names.filter(name => typeof name === 'string') : []
  } catch {
    return []
  }
}
