import { type ApprovalReason, formatRunOptions, phaseOf } from '../../api/index.ts'
import { truncateText } from '../../kubernetes/util/index.ts'
import { isConfirmed } from './approval.ts'
import type { StackFacts } from './facts.ts'
import { formatDigest, formatPlanned } from './messages.ts'

/** How much of the options of a plan a condition quotes. */
const maxOptionsChars = 200

/** Why the plan in the record is not executed: it needs the confirmation of the user who destroys the Stack, or an approval ({@link missingConsent}). */
export function approvalReason(facts: StackFacts): ApprovalReason {
  const { stack, approvalPolicy } = facts.input
  return isConfirmed(stack, approvalPolicy) ? 'ConfirmationRequired' : missingConsent(facts)
}

/** There is no approval or confirmation of the plan, that has expired, or it is of an earlier plan. */
function missingConsent({ record: { approval, plan }, runs }: StackFacts): 'Pending' | 'Expired' | 'Void' {
  if (!approval || !plan) return 'Pending'
  if (approval.runName === plan.runName) return 'Expired'
  // The annotation of an applied plan is not removed: that plan is done, not outdated.
  const isApplied = runs.some(run => run.spec.approvedPlan?.digest === approval.digest && phaseOf(run) === 'Succeeded')
  return isApplied ? 'Pending' : 'Void'
}

export function formatAwaitingApproval(facts: StackFacts): string {
  const plan = facts.record.plan!
  const { name, namespace } = facts.input.stack.metadata
  const kind = plan.mode === 'Refresh' ? 'Refresh plan' : 'Plan'
  const options = plan.options ? ` (${truncateText(formatRunOptions(plan.options), maxOptionsChars)})` : ''
  const { stack, approvalPolicy } = facts.input
  const remedy = isConfirmed(stack, approvalPolicy) ? 'Confirm it with: oarlock destroy' : 'Approve it with: oarlock approve'
  return `${formatVoidApproval(facts)}${kind} ${formatDigest(plan.digest)} of Run ${plan.runName}${options} awaits approval: ${formatPlanned(plan, plan.mode)}. ${remedy} ${name} -n ${namespace}`
}

/** Why the last approval or confirmation does not count; empty if its plan was applied, or if there is none. */
function formatVoidApproval(facts: StackFacts): string {
  const { approval, plan } = facts.record
  const { stack, approvalPolicy } = facts.input
  const isConfirmation = isConfirmed(stack, approvalPolicy)
  const consent = isConfirmation ? 'confirmation' : 'approval'
  const by = approval?.user === undefined ? '' : ` by user ${JSON.stringify(approval.user)}`
  switch (missingConsent(facts)) {
    case 'Pending':
      return ''
    case 'Expired':
      return `The ${consent}${by} has expired. `
    case 'Void':
      return approval!.digest === plan!.digest
        ? `The ${consent} of an earlier plan with the same digest is void. `
        : `The ${isConfirmation ? 'confirmed' : 'approved'} plan ${formatDigest(approval!.digest)} is outdated. `
  }
}
