import { decisionBlocker, type Stack } from '../api/index.ts'
import { CliError } from './cli-error.ts'
import { exitCodes } from './exit-codes.ts'

export type PendingPlan = NonNullable<NonNullable<Stack['status']>['plan']>

/** The shortest prefix of a digest that `--plan` accepts. */
const minDigestLength = 8

/** The plan of a Stack that awaits approval. @throws {CliError} if none does. */
export function pendingPlan(stack: Stack): PendingPlan {
  const blocker = decisionBlocker(stack)
  if (!blocker) return stack.status!.plan!
  const { text, remedy } = blocker
  throw new CliError(`stack/${stack.metadata.name}: ${text}`, { exitCode: exitCodes.failed, ...(remedy !== undefined && { hint: remedy }) })
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
