import { oarlockCommand } from '../../api/index.ts'
import { parseDuration } from '../../kubernetes/object/index.ts'
import { type AccessOptions, namespaceOf, withClient } from '../access.ts'
import { CliError } from '../cli-error.ts'
import { print } from '../console.ts'
import { exitCodes } from '../exit-codes.ts'
import { expectNoPendingPlan, expectSuccess, runRequest, startRequest } from '../request-run.ts'
import { getStack } from '../targets.ts'

export type RunOptions = AccessOptions & { wait: boolean; timeout: string }

/** `oarlock run STACK`: requests a Run; with --wait it waits until the Run has ended, and fails unless everything is applied. */
export async function run(target: string, options: RunOptions): Promise<void> {
  const timeoutMs = parseDuration(options.timeout)
  await withClient(options, async client => {
    const stack = await getStack(client, target, namespaceOf(client, options))
    const { metadata } = stack
    if (stack.status?.restored) {
      throw new CliError(`stack/${metadata.name} was restored from a backup and waits for its review`, {
        exitCode: exitCodes.rejected,
        hint: `show what differs with "${oarlockCommand('plan', metadata)}", then use "${oarlockCommand('restore accept', metadata)}"`,
      })
    }
    if (!options.wait) return print(await startRequest(client, stack, 'apply'))
    const ended = await runRequest(client, stack, 'apply', timeoutMs)
    expectSuccess(ended)
    // Where plans need approval, the Run was a Plan.
    await expectNoPendingPlan(client, ended, timeoutMs)
    print(`stack/${metadata.name} ${ended.status?.changed === false ? 'is up to date' : 'applied'}`)
  })
}
