import { approvalOf, formatRunOptions, oarlockCommand, rejectionOf, runResource, type Stack, shortDigest } from '../api/index.ts'
import type { Client } from '../kubernetes/client/index.ts'
import { isReason } from '../kubernetes/object/index.ts'
import { CliError, formatError } from './cli-error.ts'
import { exitCodes } from './exit-codes.ts'
import { patchShown } from './patch-shown.ts'
import { formatDiff, readDiff } from './plan-diff.ts'
import { planText } from './request-run.ts'
import { errPaint, note } from './terminal.ts'

/** A plan that a user may approve or confirm. */
export type ShownPlan = Pick<
  NonNullable<NonNullable<Stack['status']>['plan']>,
  'digest' | 'runName' | 'add' | 'change' | 'destroy' | 'mode' | 'options'
>

/**
 * Shows the plan in full (invariant 11).
 * @param unseen whether the user has named its digest, and wants it also if it cannot be shown.
 * @param remedy what to do if it cannot be shown, after the reason.
 * @throws {CliError} if it cannot be shown in full.
 */
export async function showPlan(
  client: Client,
  stack: Pick<Stack, 'metadata'>,
  plan: ShownPlan,
  { unseen = false, what, remedy }: { unseen?: boolean; what: string; remedy: string },
): Promise<void> {
  const { name, namespace } = stack.metadata
  try {
    const run = await client.resource(runResource).get(plan.runName, { namespace })
    const diff = await readDiff(client, run)
    if (diff.digest !== plan.digest) throw new CliError(`the plan that run/${plan.runName} has stored has digest ${diff.digest}`)
    process.stderr.write(`${formatDiff(diff, errPaint())}\n\n`)
    if (diff.missing) throw new CliError(`${diff.missing.lines} lines are missing`)
  } catch (error) {
    const { message, exitCode, hint } = formatError(error)
    const isForbidden = isReason(error, 'Forbidden') || isReason((error as Error).cause, 'Forbidden')
    if (!unseen)
      throw new CliError(`the plan cannot be shown in full, so it is not ${what}: ${message}`, {
        exitCode,
        hint: isForbidden ? hint : remedy,
      })
    note(`the plan cannot be shown in full: ${message}`)
  }
  note(`stack/${name}: plan ${shortDigest(plan.digest)}: ${planText(plan)}`)
  if (plan.mode === 'Refresh') note('  it changes only the state, not the resources')
  if (plan.options) note(`  it was made with ${formatRunOptions(plan.options)}`)
  if (plan.options?.targets) note('  the rest of the Stack is not applied: another plan follows if it is out of date')
}

/**
 * Approves the plan of a Stack that was shown (invariant 11).
 * @throws {CliError} if the spec of the Stack has changed since, or another plan awaits approval.
 */
export async function approvePlan(client: Client, shown: Pick<Stack, 'metadata'>, digest: string): Promise<void> {
  await decide(client, shown, digest, approvalOf(digest, await authenticatedName(client), Date.now()))
}

/** Rejects the plan of a Stack that was shown, as {@link approvePlan} approves it. */
export async function rejectPlan(
  client: Client,
  shown: Pick<Stack, 'metadata'>,
  digest: string,
  reason: string | undefined,
): Promise<void> {
  await decide(client, shown, digest, rejectionOf(digest, await authenticatedName(client), reason, Date.now()))
}

async function decide(client: Client, shown: Pick<Stack, 'metadata'>, digest: string, annotations: object): Promise<void> {
  if (await patchShown(client, shown, digest, () => ({ metadata: { annotations } }))) return
  const { metadata } = shown
  throw new CliError(`stack/${metadata.name} has changed since its plan was shown`, {
    exitCode: exitCodes.rejected,
    hint: `"${oarlockCommand('describe stack', metadata)}" shows what it waits for now`,
  })
}

/** The remedy where another plan may be shown. */
export const newPlanRemedy = ({ metadata }: Pick<Stack, 'metadata'>, digest: string) =>
  `"${oarlockCommand('plan', metadata)}" makes a new plan; --yes --plan ${digest} approves this one unseen`

/** The name under which the server knows the user: an admission policy accepts an approval under no other. */
async function authenticatedName(client: Client): Promise<string> {
  const body = { apiVersion: 'authentication.k8s.io/v1', kind: 'SelfSubjectReview' }
  const response = await client.request({ method: 'POST', path: '/apis/authentication.k8s.io/v1/selfsubjectreviews', body })
  const { status } = (await response.json()) as { status: { userInfo: { username: string } } }
  return status.userInfo.username
}
