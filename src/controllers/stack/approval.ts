import { annotations, type RunSpec, type Stack, type StackStatus } from '../../api/index.ts'
import { rfc3339 } from '../../kubernetes/object/index.ts'
import type { StackInput } from './decision.ts'
import type { StackFacts } from './facts.ts'
import type { StackRecord } from './fold-runs.ts'

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

/**
 * The record of the approval in the annotations. It is made once, when the controller first sees the approval: either it is of the plan that
 * awaits approval then, or it is void for good, even if a later plan has the same digest. When it expires is recorded too: a controller with
 * a longer timeout does not prolong it. Without the annotations there is none.
 */
export function recordApproval(
  { stack, nowMs, approvalTimeoutMs }: Pick<StackInput, 'stack' | 'nowMs' | 'approvalTimeoutMs'>,
  { plan, approval }: Pick<StackRecord, 'plan' | 'approval'>,
): Approval | undefined {
  const given = givenApproval(stack)
  if (!given) return undefined
  const isKnown = approval?.digest === given.digest && approval.user === given.user && approval.requestedAt === given.requestedAt
  const expiry = (fromMs: number) => ({ expiresAt: rfc3339(fromMs + approvalTimeoutMs) })
  // Earlier versions did not record when it expires.
  if (isKnown) return { ...expiry(Date.parse(approval.at)), ...approval }
  // Only the embedded server sets the time: a client that claims one can make its approval end earlier, not later.
  const claimedMs = Date.parse(given.requestedAt ?? '')
  const atMs = Number.isNaN(claimedMs) ? nowMs : Math.max(0, Math.min(claimedMs, nowMs))
  return { ...given, at: rfc3339(atMs), ...expiry(atMs), ...(plan?.digest === given.digest && { runName: plan.runName }) }
}

/** The approved plan for the spec of a Run; undefined if the plan in the record is not approved, or not any more. */
export function approvedPlan({ input, record: { plan, approval } }: StackFacts): RunSpec['approvedPlan'] {
  if (!plan || approval?.runName !== plan.runName || approval.digest !== plan.digest) return undefined
  const { digest, runName, user, at, expiresAt } = approval
  if (expiresAt === undefined || Date.parse(expiresAt) <= input.nowMs) return undefined
  return { digest, runName, ...(user !== undefined && { user }), at, expiresAt }
}
