import { annotations, oarlockCommand, type Stack, type StackStatus } from '../../api/index.ts'
import { rfc3339 } from '../../kubernetes/object/index.ts'
import { escapeHidden } from '../../kubernetes/util/index.ts'
import { isConfirmed } from './approval.ts'
import type { StackEvent } from './conditions.ts'
import type { StackInput } from './decision.ts'
import type { StackFacts } from './facts.ts'
import type { StackRecord } from './fold-runs.ts'
import { formatDigest, truncateMessage } from './messages.ts'

export type Rejection = NonNullable<StackStatus['rejection']>

/** Annotations can be 256 KB long, a digest and the name of a user are not. */
const maxLength = 300
const maxReasonLength = 1_000

/** What the annotations say. The API server has checked the user's right (`app/stack-rights.ts`). */
function givenRejection({ metadata }: Stack): Omit<Rejection, 'at' | 'runName'> | undefined {
  const {
    [annotations.rejectedPlan]: digest,
    [annotations.rejectedBy]: user,
    [annotations.rejectedAt]: requestedAt,
    [annotations.rejectionReason]: reason,
  } = metadata.annotations ?? {}
  if (digest === undefined || digest === '') return undefined
  return {
    digest: digest.slice(0, maxLength),
    ...(user && { user: user.slice(0, maxLength) }),
    ...(reason?.trim() && { reason: reason.trim().slice(0, maxReasonLength) }),
    ...(requestedAt && { requestedAt: requestedAt.slice(0, maxLength) }),
  }
}

/**
 * The record of the rejection in the annotations, made once as that of an approval: either it is of the plan that awaits approval when the controller
 * first sees it, or it is void for good, even if a later plan has the same digest. It does not expire. Without the annotations there is none:
 * removing them withdraws it. What the user confirms who destroys a Stack cannot be rejected.
 */
export function recordRejection(
  { stack, nowMs, approvalPolicy }: Pick<StackInput, 'stack' | 'nowMs' | 'approvalPolicy'>,
  { plan, rejection }: Pick<StackRecord, 'plan' | 'rejection'>,
): Rejection | undefined {
  const given = isConfirmed(stack, approvalPolicy) ? undefined : givenRejection(stack)
  if (!given) return undefined
  if (isSame(rejection, given)) return rejection
  const claimedMs = Date.parse(given.requestedAt ?? '')
  const atMs = Number.isNaN(claimedMs) ? nowMs : Math.max(0, Math.min(claimedMs, nowMs))
  return { ...given, at: rfc3339(atMs), ...(plan?.digest === given.digest && { runName: plan.runName }) }
}

/** Whether a user has rejected the plan in the record: it is applied in no case, also with an approval. */
export const isPlanRejected = ({ plan, rejection }: Pick<StackRecord, 'plan' | 'rejection'>): boolean =>
  plan !== undefined && rejection?.runName === plan.runName && rejection.digest === plan.digest

/** Who rejected the plan in the record, why, and what makes another plan. */
export function formatRejected({ input, record: { plan, rejection } }: StackFacts): string {
  const reason = rejection?.reason === undefined ? '' : `: ${formatReason(rejection.reason)}`
  const { metadata } = input.stack
  const change = metadata.deletionTimestamp === undefined ? 'change the Stack, or ' : ''
  const remedy = `${change}request another plan with ${oarlockCommand('plan', metadata)}`
  return `Plan ${formatDigest(plan?.digest ?? '')} of Run ${plan?.runName} was rejected${formatUser(rejection)}${reason}. It is not applied; ${remedy}`
}

/** Reports a new rejection that rejects nothing, as for an approval. */
export function voidRejectionEvents({ status }: Stack, { rejection, plan }: Pick<StackRecord, 'plan' | 'rejection'>): StackEvent[] {
  if (!rejection || rejection.runName !== undefined || isSame(status?.rejection, rejection)) return []
  const awaiting = plan ? `plan ${formatDigest(plan.digest)} of Run ${plan.runName} awaits approval` : 'no plan awaits approval'
  const message = `The rejection${formatUser(rejection)} of plan ${formatDigest(rejection.digest)} is void: ${awaiting}`
  return [{ type: 'Warning', reason: 'RejectionVoid', message }]
}

/** On one line and without hidden characters: clients print messages of conditions and Events as they are. */
const formatReason = (reason: string) => truncateMessage(escapeHidden(reason.trim().replace(/\s+/g, ' '))).replace(/[.\s]+$/, '')

const formatUser = (rejection: Rejection | undefined): string =>
  rejection?.user === undefined ? '' : ` by user ${JSON.stringify(rejection.user)}`

const isSame = (recorded: Rejection | undefined, { digest, user, reason, requestedAt }: Omit<Rejection, 'at'>): recorded is Rejection =>
  recorded?.digest === digest && recorded.user === user && recorded.reason === reason && recorded.requestedAt === requestedAt
