import type { Run } from '../../api/index.ts'
import { parseDuration } from '../../kubernetes/object/index.ts'
import { type AccessOptions, namespaceOf, withClient } from '../access.ts'
import { expectNoPendingPlan, expectSuccess, runRequest, startRequest } from '../request-run.ts'
import { type RunFlags, requestedRun } from '../run-options.ts'
import { getStack } from '../targets.ts'
import { print } from '../terminal.ts'

export type RunCommandOptions = AccessOptions & RunFlags & { wait: boolean; timeout: string }

/** `oarlock run STACK`: requests a Run; with --wait it waits until the Run has ended, and fails unless everything is applied. */
export async function run(target: string, options: RunCommandOptions): Promise<void> {
  const timeoutMs = parseDuration(options.timeout)
  await withClient(options, async client => {
    const stack = await getStack(client, target, namespaceOf(client, options))
    const requested = requestedRun(stack, 'apply', options)
    if (!options.wait) return print(await startRequest(client, stack, requested))
    const ended = await runRequest(client, stack, requested, timeoutMs)
    expectSuccess(ended)
    // Where plans need approval, the Run was a Plan.
    await expectNoPendingPlan(client, ended, timeoutMs)
    print(`stack/${stack.metadata.name} ${resultText(ended, options.refreshOnly === true)}`)
  })
}

function resultText({ spec, status }: Run, isRefresh: boolean): string {
  const isUnchanged = status?.changed === false
  const targets = spec.options?.targets
  if (isRefresh) return isUnchanged ? 'refreshed: the state was up to date' : 'refreshed'
  if (targets) return isUnchanged ? 'targets are up to date' : 'targets applied; the rest of the Stack was not'
  return isUnchanged ? 'is up to date' : 'applied'
}
