import { expectedStateVersion, type KnownState, reportsStateError, runBlocker, type Stack } from '../api/index.ts'
import type { Client } from '../kubernetes/client/index.ts'
import { knownStateOf } from '../stores/state/index.ts'
import { CliError } from './cli-error.ts'
import { exitCodes } from './exit-codes.ts'
import type { RequestedRun } from './run-options.ts'
import { StateApi } from './state/state-api.ts'

/** @throws {CliError} if the controller would not execute a Run, so that waiting for it would be in vain, or if it would do something else than was requested. */
export async function expectRunnable(client: Client, stack: Stack, requested: RequestedRun): Promise<void> {
  const state = reportsStateError(stack) ? await readKnownState(client, stack) : undefined
  const blocker = runBlocker(stack, requested, state)
  if (!blocker) return
  const { text, remedy } = blocker
  const what = `no Run of stack/${stack.metadata.name} was requested`
  throw new CliError(`${what}: ${text}`, {
    exitCode: stack.spec.suspend ? exitCodes.failed : exitCodes.rejected,
    ...(remedy !== undefined && { hint: remedy }),
  })
}

/** Undefined if the user may not read it. */
export async function readKnownState(client: Client, stack: Stack): Promise<KnownState | undefined> {
  const { name, namespace = 'default' } = stack.metadata
  const versions = await new StateApi(client, namespace, name).versions().catch(() => undefined)
  return versions && knownStateOf(expectedStateVersion(stack), versions)
}
