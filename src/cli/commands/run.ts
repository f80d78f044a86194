import { parseDuration } from '../../kubernetes/object/index.ts'
import { type AccessOptions, namespaceOf, withClient } from '../access.ts'
import { print } from '../console.ts'
import { expectNoPendingPlan, expectSuccess, runRequest, startRequest } from '../request-run.ts'
import { getStack } from '../targets.ts'

export type RunOptions = AccessOptions & { wait: boolean; timeout: string }

/** `oarlock run STACK`: requests a Run; with --wait it waits until the Run has ended, and fails unless everything is applied. */
export async function run(target: string, options: RunOptions): Promise<void> {
  const timeoutMs = parseDuration(options.timeout)
  await withClient(options, async client => {
    const stack = await getStack(client, target, namespaceOf(client, options))
    if (!options.wait) return print(await startRequest(client, stack, 'apply'))
    const ended = await runRequest(client, stack, 'apply', timeoutMs)
    expectSuccess(ended)
    // Where plans need approval, the Run was a Plan.
    await expectNoPendingPlan(client, ended, timeoutMs)
    print(`stack/${stack.metadata.name} ${ended.status?.changed === false ? 'is up to date' : 'applied'}`)
  })
}
