import { oarlockCommand, type Stack, stackResource } from '../api/index.ts'
import type { Client } from '../kubernetes/client/index.ts'
import { findCondition, isConditionTrue } from '../kubernetes/object/index.ts'
import { CliError } from './cli-error.ts'
import { exitCodes } from './exit-codes.ts'
import { stackMessage, stackState } from './fleet/stack-state.ts'
import { awaitingApproval } from './request-run.ts'
import { waitFor } from './wait-for.ts'

/**
 * Waits until the Stack is Ready with its present spec. @throws {CliError} awaitingApproval, canceled or failed as soon as it needs a user;
 * a Run that is retried is waited for.
 */
export async function whenReady(client: Client, { metadata }: Pick<Stack, 'metadata'>, timeoutMs: number): Promise<void> {
  const { namespace, name, uid } = metadata
  await waitFor(client, stackResource, { namespace, name, timeoutMs, what: `stack/${name} to be Ready` }, now => {
    if (now?.metadata.uid !== uid) throw new CliError(`stack/${name} was deleted`, { exitCode: exitCodes.notFound })
    const problem = (text: string, reason = '') =>
      new CliError(`stack/${name} ${text}`, {
        exitCode: reason === 'RunCanceled' ? exitCodes.canceled : exitCodes.failed,
        hint: `"${oarlockCommand('describe stack', metadata)}" shows its state`,
      })
    const { reason, message } = stackMessage(now)
    switch (stackState(now)) {
      case 'Ready':
        return true
      case 'AwaitingApproval':
        throw now.status?.plan ? awaitingApproval(now, now.status.plan) : problem('awaits approval')
      case 'Failed':
      case 'EngineNotFound':
        throw problem(`failed: ${reason}: ${message}`, reason)
      case 'Suspended':
        throw problem('is suspended')
      case 'Deleting':
        throw problem('is being deleted')
      case 'Pending':
      case 'Working':
        return undefined
    }
  })
}

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
