import { annotations, oarlockCommand, runResource, type Stack, stackResource } from '../../api/index.ts'
import type { Client } from '../../kubernetes/client/index.ts'
import { isConditionTrue, parseDuration } from '../../kubernetes/object/index.ts'
import { type AccessOptions, namespaceOf, withClient } from '../access.ts'
import { CliError } from '../cli-error.ts'
import { confirm, note, print, printStream } from '../console.ts'
import { exitCodes } from '../exit-codes.ts'
import { streamLog } from '../follow-log.ts'
import { planText } from '../request-run.ts'
import { getStack } from '../targets.ts'
import { waitFor } from '../wait-for.ts'

export type ApproveOptions = AccessOptions & { plan?: string; yes?: boolean; wait: boolean; timeout: string }
type PendingPlan = NonNullable<NonNullable<Stack['status']>['plan']>

/** The shortest prefix of a digest that `--plan` accepts. */
const minDigestLength = 8

/** `oarlock approve STACK`: shows the plan that awaits approval, and approves exactly that one. */
export async function approve(target: string, options: ApproveOptions): Promise<void> {
  await withClient(options, async client => {
    const stack = await getStack(client, target, namespaceOf(client, options))
    const { name, namespace, resourceVersion } = stack.metadata
    const plan = pendingPlan(stack)
    if (options.plan !== undefined) checkDigest(options.plan, plan)
    await showPlan(client, stack, plan)
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
    if (options.wait) await whenApplied(client, stack, parseDuration(options.timeout))
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

async function showPlan(client: Client, stack: Stack, plan: PendingPlan): Promise<void> {
  const run = await client.resource(runResource).getOrUndefined(plan.runName, { namespace: stack.metadata.namespace })
  if (run)
    await printStream(write => streamLog(client, run, { follow: false }, write), process.stderr).catch(() =>
      note('(the log of the plan was deleted)'),
    )
  note(`stack/${stack.metadata.name}: plan ${shortDigest(plan.digest)}: ${planText(plan)}`)
}

async function whenApplied(client: Client, stack: Stack, timeoutMs: number): Promise<void> {
  const { name, namespace } = stack.metadata
  await waitFor(client, stackResource, { namespace, name, timeoutMs, what: `stack/${name} to be applied` }, now => {
    if (!now) throw new CliError(`stack/${name} was deleted`, { exitCode: exitCodes.notFound })
    const { conditions } = now.status ?? {}
    if (isConditionTrue(conditions, 'Stalled'))
      throw new CliError(`stack/${name} failed`, { hint: `"${oarlockCommand('describe stack', stack.metadata)}" shows why` })
    return isConditionTrue(conditions, 'Ready') ? true : undefined
  })
  print(`stack/${name} is Ready`)
}

const shortDigest = (digest: string) => digest.replace(/^sha256:/, '').slice(0, 12)
