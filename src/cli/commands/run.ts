import { oarlockCommand, phaseOf } from '../../api/index.ts'
import { parseDuration } from '../../kubernetes/object/index.ts'
import { type AccessOptions, namespaceOf, withClient } from '../access.ts'
import { CliError } from '../cli-error.ts'
import { note, print, printStream } from '../console.ts'
import { exitCodes } from '../exit-codes.ts'
import { streamLog } from '../follow-log.ts'
import { expectSuccess, planText, requestRun, whenEnded, whenRequested } from '../request-run.ts'
import { getStack } from '../targets.ts'

export type RunOptions = AccessOptions & { wait: boolean; timeout: string }

/** `oarlock plan STACK` and `oarlock run STACK`: requests a Run, and with --wait waits until it has ended. */
export async function requestAndWait(type: 'plan' | 'apply', target: string, options: RunOptions): Promise<void> {
  const timeoutMs = parseDuration(options.timeout)
  await withClient(options, async client => {
    const stack = await getStack(client, target, namespaceOf(client, options))
    const { name, namespace } = stack.metadata
    if (stack.spec.suspend) throw new CliError(`stack/${name} is suspended`, { hint: 'set spec.suspend to false first' })
    if (stack.status?.restored && type === 'apply') {
      throw new CliError(`stack/${name} was restored from a backup and waits for its review`, {
        exitCode: exitCodes.rejected,
        hint: `show what differs with "${oarlockCommand('plan', stack.metadata)}", then use "${oarlockCommand('restore accept', stack.metadata)}"`,
      })
    }
    const request = await requestRun(client, stack, type)
    if (!options.wait)
      return print(
        `stack/${name}: ${type === 'plan' ? 'plan' : 'run'} requested; follow it with: oarlock logs -f stack/${name} -n ${namespace}`,
      )
    const run = await whenRequested(client, stack, request, timeoutMs)
    note(`run/${run.metadata.name}`)
    const ended = await whenEnded(client, run, timeoutMs, one => note(`  ${phaseOf(one)}`))
    if (type === 'plan') {
      await printStream(write => streamLog(client, ended, { follow: false }, write)).catch(error => {
        if (!(error instanceof CliError)) throw error
      })
    }
    expectSuccess(ended)
    const { plan, changed } = ended.status ?? {}
    if (type === 'plan') print(plan ? `stack/${name}: plan: ${planText(plan)}` : `stack/${name}: planned`)
    else print(`stack/${name} ${changed === false ? 'is up to date' : 'applied'}`)
  })
}
