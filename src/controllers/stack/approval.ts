import { type ApprovalPolicy, annotations, type RunSpec, requiresApproval, type Stack, type StackStatus } from '../../api/index.ts'
import { rfc3339 } from '../../kubernetes/object/index.ts'
import type { StackEvent } from './conditions.ts'
import type { StackInput } from './decision.ts'
import type { StackFacts } from './facts.ts'
import type { StackRecord } from './fold-runs.ts'
import { formatDigest } from './messages.ts'

export type Approval = NonNullable<StackStatus['approval']>

/** Annotations can be 256 KB long, a digest and the name of a user are not. */
const maxLength = 300

/** What the annotations say. The API server has checked the user's right (`app/stack-rights.ts`). */
function givenApproval({ metadata }: Stack): Omit<Approval, 'at' | 'expiresAt' | 'runName'> | undefined {
  const {
    [annotations.approvedPlan]: digest,
    [annotations.approvedBy]: user,
    [annotations.approvedAt]: requestedAt,
  } = metadata.annotations ?? {}
  if (digest === undefined || digest === '') return undefined
  const bounded = (value: string | undefined) => value?.slice(0, maxLength)
  return { digest: bounded(digest)!, ...(user && { user: bounded(user) }), ...(requestedAt && { requestedAt: bounded(requestedAt) }) }
}

/** Whether the deletion of a Stack that requires no approval executes only a plan that its user has confirmed. */
export function isConfirmed({ metadata, spec }: Stack, approvalPolicy: ApprovalPolicy | undefined): boolean {
  const isDeleting = metadata.deletionTimestamp !== undefined && metadata.annotations?.[annotations.destroyPlan] !== undefined
  return isDeleting && !requiresApproval(spec, approvalPolicy)
}

/** `<digest>@<time>`: with another time it is a new confirmation, also of a plan whose confirmation has expired. */
function givenConfirmation({ metadata }: Stack): Omit<Approval, 'at' | 'expiresAt' | 'runName'> | undefined {
  const [digest = '', requestedAt] = (metadata.annotations?.[annotations.destroyPlan] ?? '').slice(0, maxLength).split('@')
  return digest === '' ? undefined : { digest, ...(requestedAt && { requestedAt }) }
}

/**
 * The record of the approval in the annotations. It is made once, when the controller first sees the approval: either it is of the plan that
 * awaits approval then, or it is void for good, even if a later plan has the same digest. When it expires is recorded too: a controller with
 * a longer timeout does not prolong it. Without the annotations there is none.
 */
export function recordApproval(
  { stack, nowMs, approvalTimeoutMs, approvalPolicy }: Pick<StackInput, 'stack' | 'nowMs' | 'approvalTimeoutMs' | 'approvalPolicy'>,
  { plan, approval }: Pick<StackRecord, 'plan' | 'approval'>,
): Approval | undefined {
  const given = isConfirmed(stack, approvalPolicy) ? givenConfirmation(stack) : givenApproval(stack)
  if (!given) return undefined
  const expiry = (fromMs: number) => ({ expiresAt: rfc3339(fromMs + approvalTimeoutMs) })
  // Earlier versions did not record when it expires.
  if (isSame(approval, given)) return { ...expiry(Date.parse(approval.at)), ...approval }
  // Only the embedded server sets the time: a client that claims one can make its approval end earlier, not later.
  const claimedMs = Date.parse(given.requestedAt ?? '')
  const atMs = Number.isNaN(claimedMs) ? nowMs : Math.max(0, Math.min(claimedMs, nowMs))
  return { ...given, at: rfc3339(atMs), ...expiry(atMs), ...(plan?.digest === given.digest && { runName: plan.runName }) }
}

/** Reports a new approval that approves nothing: the admission rules reject most, but a plan may become outdated at the same moment. */
export function voidApprovalEvents({ status }: Stack, { approval, plan }: Pick<StackRecord, 'plan' | 'approval'>): StackEvent[] {
  if (!approval || approval.runName !== undefined || isSame(status?.approval, approval)) return []
  const by = approval.user === undefined ? '' : ` by user ${JSON.stringify(approval.user)}`
  const awaiting = plan ? `plan ${formatDigest(plan.digest)} of Run ${plan.runName} awaits approval` : 'no plan awaits approval'
  const message = `The approval${by} of plan ${formatDigest(approval.digest)} is void: ${awaiting}`
  return [{ type: 'Warning', reason: 'ApprovalVoid', message }]
}

const isSame = (recorded: Approval | undefined, { digest, user, requestedAt }: Omit<Approval, 'at'>): recorded is Approval =>
  recorded?.digest === digest && recorded.user === user && recorded.requestedAt === requestedAt

/** The approved plan for the spec of a Run; undefined if the plan in the record is not approved, or not any more. */
export function approvedPlan({ input, record: { plan, approval } }: StackFacts): RunSpec['approvedPlan'] {
  if (!plan || approval?.runName !== plan.runName || approval.digest !== plan.digest) return undefined
  const { digest, runName, user, at, expiresAt } = approval
  if (expiresAt === undefined || Date.parse(expiresAt) <= input.nowMs) return undefined
  return { digest, runName, ...(user !== undefined && { user }), at, expiresAt }
}
