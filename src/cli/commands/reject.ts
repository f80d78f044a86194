import { oarlockCommand, shortDigest } from '../../api/index.ts'
import { type AccessOptions, namespaceOf, withClient } from '../access.ts'
import { rejectPlan } from '../approve-plan.ts'
import { checkDigest, pendingPlan } from '../pending-plan.ts'
import { planText } from '../request-run.ts'
import { requireRights } from '../require-rights.ts'
import { getStack } from '../targets.ts'
import { confirm, note, print } from '../terminal.ts'

export type RejectOptions = AccessOptions & { reason?: string; plan?: string; yes?: boolean }

/** `oarlock reject STACK`: rejects the plan that awaits approval, which needs not be shown: nothing is applied. */
export async function reject(target: string, options: RejectOptions): Promise<void> {
  await withClient(options, async client => {
    const stack = await getStack(client, target, namespaceOf(client, options))
    const { name, namespace } = stack.metadata
    const plan = pendingPlan(stack)
    if (options.plan !== undefined) checkDigest(options.plan, plan)
    await requireRights(
      client,
      { namespace: namespace ?? 'default', name },
      [{ verb: 'update', subresource: 'approval' }, { verb: 'patch' }],
      { purpose: 'rejecting a plan' },
    )
    note(`stack/${name}: plan ${shortDigest(plan.digest)} of run/${plan.runName}: ${planText(plan)}`)
    await confirm(`reject this plan of stack/${name}?`, options)
    await rejectPlan(client, stack, plan.digest, options.reason)
    print(`stack/${name}: plan ${shortDigest(plan.digest)} rejected`)
    note(`hint: a change of the Stack makes another plan, and so does "${oarlockCommand('plan', stack.metadata)}"`)
  })
}
