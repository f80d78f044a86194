import { expectedStateVersion, isStateError, oarlockCommand, type Stack } from '../api/index.ts'
import type { Client } from '../kubernetes/client/index.ts'
import { findCondition } from '../kubernetes/object/index.ts'
import { decideStateError } from '../stores/state/index.ts'
import { CliError } from './cli-error.ts'
import { exitCodes } from './exit-codes.ts'
import { hasJournal, newestNumber, StateApi } from './state/state-api.ts'

/** @throws {CliError} if the controller would not execute a Run, so that waiting for it would be in vain. */
export async function expectRunnable(client: Client, stack: Stack, type: 'plan' | 'apply' | 'refresh'): Promise<void> {
  const { metadata, spec, status } = stack
  const { name } = metadata
  if (spec.suspend) throw new CliError(`stack/${name} is suspended`, { hint: `resume it first: ${oarlockCommand('resume', metadata)}` })
  if (status?.restored && type !== 'plan') {
    throw new CliError(`stack/${name} was restored from a backup and waits for its review`, {
      exitCode: exitCodes.rejected,
      hint: `show what differs with "${oarlockCommand('plan', metadata)}", then use "${oarlockCommand('restore accept', metadata)}"`,
    })
  }
  const stalled = findCondition(status?.conditions, 'Stalled')
  if (isStateError(stalled?.reason) && (await isStateRejected(client, stack)))
    throw new CliError(`stack/${name}: ${stalled?.message}`, { exitCode: exitCodes.rejected })
}

/** Whether the stored state is still missing or too old, or still has a journal that was not understood. False if the user may not read it. */
async function isStateRejected(client: Client, stack: Stack): Promise<boolean> {
  const { name, namespace = 'default' } = stack.metadata
  const versions = await new StateApi(client, namespace, name).versions().catch(() => undefined)
  if (versions === undefined) return false
  const isUnreadable = findCondition(stack.status?.conditions, 'Stalled')?.reason === 'JournalUnreadable'
  return decideStateError(expectedStateVersion(stack), newestNumber(versions)) !== undefined || (isUnreadable && hasJournal(versions))
}
