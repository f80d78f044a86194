import { oarlockCommand, type Stack } from '../api/index.ts'
import { isConditionTrue } from '../kubernetes/object/index.ts'
import { CliError } from './cli-error.ts'
import { exitCodes } from './exit-codes.ts'
import { isConfirmedDeletion } from './request-run.ts'

export type PendingPlan = NonNullable<NonNullable<Stack['status']>['plan']>

/** The shortest prefix of a digest that `--plan` accepts. */
const minDigestLength = 8

/** The plan of a Stack that awaits approval. @throws {CliError} if none does. */
export function pendingPlan(stack: Stack): PendingPlan {
  const { plan, conditions } = stack.status ?? {}
  if (isConfirmedDeletion(stack))
    throw new CliError(`the deletion of stack/${stack.metadata.name} needs no approval, but the confirmation of the user who destroys it`, {
      exitCode: exitCodes.failed,
      hint: `show and confirm its plan: ${oarlockCommand('destroy', stack.metadata)}`,
    })
  if (plan && isConditionTrue(conditions, 'AwaitingApproval')) return plan
  const hint =
    stack.spec.approval === 'Manual'
      ? `"${oarlockCommand('describe stack', stack.metadata)}" shows its state`
      : 'only a Stack with spec.approval Manual, or in a namespace with the label oarlock.dev/approval, awaits approval'
  throw new CliError(`stack/${stack.metadata.name} has no plan awaiting approval`, { exitCode: exitCodes.failed, hint })
}

/** @throws {CliError} unless `given` is the digest of the plan, or its beginning. */
export function checkDigest(given: string, { digest }: PendingPlan): void {
  const bare = (text: string) => text.replace(/^sha256:/, '')
  if (bare(given).length >= minDigestLength && bare(digest).startsWith(bare(given))) return
  throw new CliError(`plan ${given} is not the plan that awaits approval, ${digest}`, {
    exitCode: exitCodes.rejected,
    hint: `review the pending plan; --plan takes a digest or a prefix of at least ${minDigestLength} characters`,
  })
}
