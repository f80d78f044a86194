import type { Stack } from '../api/index.ts'
import { findCondition, isConditionTrue } from '../kubernetes/object/index.ts'
import { CliError } from './cli-error.ts'
import { exitCodes } from './exit-codes.ts'
import { awaitingApproval } from './request-run.ts'

/** Why the deletion of a Stack does not continue without a user; undefined while it does. `approved` is the Run whose plan the user has approved. */
export function destroyProblem(stack: Stack, approved?: string): CliError | undefined {
  const { metadata, status } = stack
  // What was reported before the deletion is no result of it.
  if (!metadata.deletionTimestamp || status?.observedGeneration !== metadata.generation) return undefined
  const { plan, conditions } = status ?? {}
  if (plan && plan.runName !== approved && isConditionTrue(conditions, 'AwaitingApproval')) return awaitingApproval(stack, plan)
  const stalled = findCondition(conditions, 'Stalled')
  if (stalled?.status !== 'True') return undefined
  return new CliError(`cannot destroy stack/${metadata.name}: ${stalled.message}`, {
    exitCode: stalled.reason === 'RunCanceled' ? exitCodes.canceled : exitCodes.failed,
    hint: `"oarlock logs stack/${metadata.name} -n ${metadata.namespace}" shows the log`,
  })
}
