import type { Run } from '../../api/index.ts'
import { isEnded, oarlockCommand, runResource } from '../../api/index.ts'
import { parseDuration } from '../../kubernetes/object/index.ts'
import { type AccessOptions, namespaceOf, withClient } from '../access.ts'
import { CliError, usageError } from '../cli-error.ts'
import { exitCodes } from '../exit-codes.ts'
import { streamLog } from '../follow-log.ts'
import { getStackOrRun, runsOf } from '../targets.ts'
import { note, printStream } from '../terminal.ts'
import { waitFor } from '../wait-for.ts'

export type LogsOptions = AccessOptions & {
  follow?: boolean
  tail?: number
  timestamps?: boolean
  since?: string
  /** Milliseconds since the epoch. */
  sinceTime?: number
  previous?: boolean
}

/** `oarlock logs STACK|RUN`: prints the log of a Run, or of the latest Run of a Stack; with -f until that Run has ended. */
export async function logs(target: string, options: LogsOptions): Promise<void> {
  const { since, sinceTime, previous = false } = options
  if (since !== undefined && sinceTime !== undefined) throw usageError('--since cannot be combined with --since-time', 'omit one of both')
  const sinceMs = since === undefined ? sinceTime : Date.now() - parseDuration(since)
  await withClient(options, async client => {
    const found = await getStackOrRun(client, target, namespaceOf(client, options))
    let run: Run | undefined
    if (found.kind === 'run') {
      if (previous) throw usageError('--previous needs a Stack', 'a Run has one log')
      run = found.run
    } else {
      const runs = await runsOf(client, found.stack)
      run = runs[previous ? 1 : 0]
      if (!run && runs.length > 0)
        throw new CliError(`stack "${found.stack.metadata.name}" has only one Run`, {
          exitCode: exitCodes.notFound,
          hint: 'omit --previous',
        })
      if (!run)
        throw new CliError(`stack "${found.stack.metadata.name}" has no Run yet`, {
          exitCode: exitCodes.notFound,
          hint: `"${oarlockCommand('describe stack', found.stack.metadata)}" shows why`,
        })
      note(`run/${run.metadata.name}`)
    }
    if (options.follow && !isEnded(run) && !run.status?.startedAt) run = await whenStarted(run)
    const shown = run
    const follow = options.follow === true && !isEnded(shown)
    const onMissingTimes = () => note('this log has no times: an earlier version of Oarlock stored it')
    const { tail, timestamps } = options
    await printStream(write => streamLog(client, shown, { follow, tail, timestamps, sinceMs, onMissingTimes }, write))

    async function whenStarted({ metadata: { namespace, name } }: Run): Promise<Run> {
      return await waitFor(client, runResource, { namespace, name, timeoutMs: 2_147_483_647, what: `run/${name} to start` }, now => {
        if (!now) throw new CliError(`run/${name} was deleted`, { exitCode: exitCodes.notFound })
        return now.status?.startedAt || isEnded(now) ? now : undefined
      })
    }
  })
}
