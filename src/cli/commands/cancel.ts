import { isEnded, phaseOf, type Run, runResource } from '../../api/index.ts'
import { parseDuration } from '../../kubernetes/object/index.ts'
import { type AccessOptions, namespaceOf, withClient } from '../access.ts'
import { CliError } from '../cli-error.ts'
import { whenEnded } from '../request-run.ts'
import { getStackOrRun, runsOf } from '../targets.ts'
import { note, print } from '../terminal.ts'

export type CancelOptions = AccessOptions & { wait: boolean; timeout: string }

/** `oarlock cancel STACK|RUN`: cancels active Runs; their engines are interrupted so that they save their state. */
export async function cancel(target: string, options: CancelOptions): Promise<void> {
  await withClient(options, async client => {
    const found = await getStackOrRun(client, target, namespaceOf(client, options))
    const runs: Run[] = found.kind === 'run' ? [found.run] : await runsOf(client, found.stack)
    const active = runs.filter(run => !isEnded(run))
    if (active.length === 0) {
      const ended =
        found.kind === 'run'
          ? `run/${found.run.metadata.name} has already ended (${found.run.status?.phase})`
          : `stack/${found.stack.metadata.name} has no active Run`
      throw new CliError(ended)
    }
    for (const { metadata } of active) {
      await client.resource(runResource).patch(metadata.name, { spec: { cancel: true } }, { type: 'merge', namespace: metadata.namespace })
      print(`run/${metadata.name} cancellation requested`)
    }
    if (!options.wait) return
    const others: Run[] = []
    for (const run of active) {
      const ended = await whenEnded(client, run, parseDuration(options.timeout), one => note(`  ${phaseOf(one)}`))
      print(`run/${ended.metadata.name} ended as ${ended.status?.phase}`)
      if (ended.status?.phase !== 'Canceled') others.push(ended)
    }
    if (others.length > 0) {
      const names = others.map(({ metadata, status }) => `run/${metadata.name} (${status?.phase})`).join(', ')
      throw new CliError(`ended before the cancellation took effect: ${names}`)
    }
  })
}
