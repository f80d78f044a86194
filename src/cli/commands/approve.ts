import { annotations, oarlockCommand, phaseOf, runResource, type Stack, stackResource } from '../../api/index.ts'
import type { Client } from '../../kubernetes/client/index.ts'
import { isConditionTrue, isReason, parseDuration } from '../../kubernetes/object/index.ts'
import { type AccessOptions, namespaceOf, withClient } from '../access.ts'
import { CliError, formatError } from '../cli-error.ts'
import { confirm, errPaint, note, print } from '../console.ts'
import { exitCodes } from '../exit-codes.ts'
import { formatDiff, readDiff } from '../plan-diff.ts'
import { awaitingApproval, expectSuccess, planText, whenEnded, whenRecorded } from '../request-run.ts'
import { requireRights } from '../require-rights.ts'
import { getStack } from '../targets.ts'
import { waitFor } from '../wait-for.ts'
import { whenDestroyed } from '../when-destroyed.ts'

export type ApproveOptions = AccessOptions & { plan?: string; yes?: boolean; wait: boolean; timeout: string }
type PendingPlan = NonNullable<NonNullable<Stack['status']>['plan']>

/** The shortest prefix of a digest that `--plan` accepts. */
const minDigestLength = 8

/**
 * `oarlock approve STACK`: shows the plan that awaits approval in full, and approves exactly that one (invariant 11). One that cannot be shown
 * is approved only by its digest.
 */
export async function approve(target: string, options: ApproveOptions): Promise<void> {
  await withClient(options, async client => {
    const stack = await getStack(client, target, namespaceOf(client, options))
    const { name, namespace, resourceVersion } = stack.metadata
    const plan = pendingPlan(stack)
    if (options.plan !== undefined) checkDigest(options.plan, plan)
    await requireRights(
      client,
      { namespace: namespace ?? 'default', name },
      [{ verb: 'update', subresource: 'approval' }, { verb: 'patch' }],
      {
        purpose: 'approving a plan',
      },
    )
    await showPlan(client, stack, plan, options)
    await confirm(`approve this plan of stack/${name}?`, options)
    const approval = {
      [annotations.approvedPlan]: plan.digest,
      [annotations.approvedBy]: await authenticatedName(client),
      // A new value is a new approval, also of a plan whose approval has expired.
      [annotations.approvedAt]: new Date().toISOString(),
    }
    await client.resource(stackResource).patch(
      name,
      { metadata: { annotations: approval } },
      // Only the plan that was shown is approved: if the Stack has changed since, the server returns Conflict (invariant 11).
      { type: 'merge', namespace, resourceVersion },
    )
    print(`stack/${name}: plan ${shortDigest(plan.digest)} approved`)
    if (!options.wait) return
    const timeoutMs = parseDuration(options.timeout)
    if (!stack.metadata.deletionTimestamp) return await whenApplied(client, stack, plan, timeoutMs)
    await whenDestroyed(client, stack, timeoutMs, plan.runName)
    print(`stack/${name} destroyed`)
  })
}

function pendingPlan(stack: Stack): PendingPlan {
  const { plan, conditions } = stack.status ?? {}
  if (plan && isConditionTrue(conditions, 'AwaitingApproval')) return plan
  const hint =
    stack.spec.approval === 'Manual'
      ? `"${oarlockCommand('describe stack', stack.metadata)}" shows its state`
      : 'only a Stack with spec.approval Manual, or in a namespace with the label oarlock.dev/approval, awaits approval'
  throw new CliError(`stack/${stack.metadata.name} has no plan awaiting approval`, { exitCode: exitCodes.failed, hint })
}

/** The name under which the server knows the user: an admission policy accepts an approval under no other. */
async function authenticatedName(client: Client): Promise<string> {
  const body = { apiVersion: 'authentication.k8s.io/v1', kind: 'SelfSubjectReview' }
  const response = await client.request({ method: 'POST', path: '/apis/authentication.k8s.io/v1/selfsubjectreviews', body })
  const { status } = (await response.json()) as { status: { userInfo: { username: string } } }
  return status.userInfo.username
}

function checkDigest(given: string, { digest }: PendingPlan): void {
  const bare = (text: string) => text.replace(/^sha256:/, '')
  if (bare(given).length >= minDigestLength && bare(digest).startsWith(bare(given))) return
  throw new CliError(`plan ${given} is not the plan that awaits approval, ${digest}`, {
    exitCode: exitCodes.rejected,
    hint: `review the pending plan; --plan takes a digest or a prefix of at least ${minDigestLength} characters`,
  })
}

async function showPlan(client: Client, stack: Stack, plan: PendingPlan, options: ApproveOptions): Promise<void> {
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
    if (options.yes && options.plan !== undefined) note(`the plan cannot be shown in full: ${message}`)
    else
      throw new CliError(`the plan cannot be shown in full, so it is not approved: ${message}`, {
        exitCode,
        hint: isForbidden
          ? hint
          : `"${oarlockCommand('plan', stack.metadata)}" makes a new plan; --yes --plan ${plan.digest} approves this one unseen`,
      })
  }
  note(`stack/${name}: plan ${shortDigest(plan.digest)}: ${planText(plan)}`)
}

/**
 * Waits until the approved plan is applied. A Run that was lost is continued by another one.
 * @throws {CliError} awaitingApproval if the approval was void, because another plan had replaced the approved one.
 */
async function whenApplied(client: Client, stack: Stack, plan: PendingPlan, timeoutMs: number): Promise<void> {
  const { name, namespace, uid } = stack.metadata
  for (let epoch = stack.status?.lastRunNumber ?? 0; ; ) {
    const what = `stack/${name} to apply the approved plan`
    const runName = await waitFor(client, stackResource, { namespace, name, timeoutMs, what }, now => {
      if (now?.metadata.uid !== uid) throw new CliError(`stack/${name} was deleted`, { exitCode: exitCodes.notFound })
      const { lastRunNumber = 0, lastRun, plan: pending, conditions } = now.status ?? {}
      if (pending && pending.runName !== plan.runName && isConditionTrue(conditions, 'AwaitingApproval'))
        throw awaitingApproval(now, pending)
      if (lastRunNumber > epoch) return lastRun?.name
      if (isConditionTrue(conditions, 'Stalled'))
        throw new CliError(`stack/${name} failed`, { hint: `"${oarlockCommand('describe stack', stack.metadata)}" shows why` })
      return undefined
    })
    const run = await client.resource(runResource).get(runName, { namespace })
    epoch = run.spec.epoch
    // A Run of another kind may have begun just before the approval.
    if (run.spec.approvedPlan?.digest !== plan.digest) continue
    const ended = await whenEnded(client, run, timeoutMs, one => note(`  ${phaseOf(one)}`))
    if (ended.status?.phase === 'Lost') continue
    expectSuccess(ended)
    await whenRecorded(client, ended, timeoutMs)
    return print(`stack/${name} applied`)
  }
}

const shortDigest = (digest: string) => digest.replace(/^sha256:/, '').slice(0, 12)
