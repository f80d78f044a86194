import { oarlockCommand, phaseOf, runResource, type Stack, shortDigest, stackResource } from '../../api/index.ts'
import type { Client } from '../../kubernetes/client/index.ts'
import { isConditionTrue, parseDuration } from '../../kubernetes/object/index.ts'
import { type AccessOptions, namespaceOf, withClient } from '../access.ts'
import { approvePlan, newPlanRemedy, showPlan } from '../approve-plan.ts'
import { CliError } from '../cli-error.ts'
import { exitCodes } from '../exit-codes.ts'
import { checkDigest, type PendingPlan, pendingPlan } from '../pending-plan.ts'
import { awaitingApproval, expectSuccess, whenEnded, whenRecorded } from '../request-run.ts'
import { requireRights } from '../require-rights.ts'
import { getStack } from '../targets.ts'
import { confirm, note, print } from '../terminal.ts'
import { waitFor } from '../wait-for.ts'
import { whenDestroyed } from '../when-destroyed.ts'

export type ApproveOptions = AccessOptions & { plan?: string; yes?: boolean; wait: boolean; timeout: string }

/**
 * `oarlock approve STACK`: shows the plan that awaits approval in full, and approves exactly that one (invariant 11). One that cannot be shown
 * is approved only by its digest.
 */
export async function approve(target: string, options: ApproveOptions): Promise<void> {
  await withClient(options, async client => {
    const stack = await getStack(client, target, namespaceOf(client, options))
    const { name, namespace } = stack.metadata
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
    const unseen = options.yes && options.plan !== undefined
    await showPlan(client, stack, plan, { unseen: unseen === true, what: 'approved', remedy: newPlanRemedy(stack, plan.digest) })
    if (stack.spec.suspend) note(`  stack/${name} is suspended: the plan is applied after ${oarlockCommand('resume', stack.metadata)}`)
    await confirm(`approve this plan of stack/${name}?`, options)
    await approvePlan(client, stack, plan.digest)
    print(`stack/${name}: plan ${shortDigest(plan.digest)} approved`)
    if (!options.wait) return
    expectNotSuspended(stack)
    const timeoutMs = parseDuration(options.timeout)
    if (!stack.metadata.deletionTimestamp) return await whenApplied(client, stack, plan, timeoutMs)
    await whenDestroyed(client, stack, timeoutMs, plan.runName)
    print(`stack/${name} destroyed`)
  })
}

/** @throws {CliError} if the approved plan has to wait for a user. */
function expectNotSuspended({ metadata, spec }: Stack): void {
  if (!spec.suspend) return
  throw new CliError(`stack/${metadata.name} is suspended: the approved plan is not applied yet`, {
    exitCode: exitCodes.failed,
    hint: `resume it: ${oarlockCommand('resume', metadata)}`,
  })
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
      expectNotSuspended(now)
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
    return print(`stack/${name} ${plan.mode === 'Refresh' ? 'refreshed' : plan.options?.targets ? 'targets applied' : 'applied'}`)
  }
}
