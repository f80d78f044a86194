import type { Run, StoredDiff } from '../../api/index.ts'
import type { Client } from '../../kubernetes/client/index.ts'
import { parseDuration } from '../../kubernetes/object/index.ts'
import { type AccessOptions, namespaceOf, withClient } from '../access.ts'
import { CliError, formatError, usageError } from '../cli-error.ts'
import { streamLog } from '../follow-log.ts'
import { serialize } from '../output/print-objects.ts'
import { formatDiff, readDiff } from '../plan-diff.ts'
import { expectSuccess, planText, runRequest, startRequest } from '../request-run.ts'
import { type RunFlags, requestedRun } from '../run-options.ts'
import { getStack, getStackOrRun } from '../targets.ts'
import { note, outPaint, print, printStream } from '../terminal.ts'

export type PlanOptions = AccessOptions & RunFlags & { run?: string; output?: 'text' | 'json'; wait: boolean; timeout: string }

/** `oarlock plan STACK`: plans and shows the plan in full. With `--run` it shows that of a Run, and plans nothing. */
export async function plan(target: string | undefined, options: PlanOptions): Promise<void> {
  await withClient(options, async client => {
    const namespace = namespaceOf(client, options)
    if (options.run !== undefined) return await showPlan(client, await findRun(client, options.run, target, namespace), options)
    if (target === undefined) throw usageError('a Stack or --run is missing', 'use oarlock plan STACK, or oarlock plan --run RUN')
    const stack = await getStack(client, target, namespace)
    const requested = requestedRun(stack, 'plan', options)
    if (!options.wait) return print(await startRequest(client, stack, requested))
    const ended = await runRequest(client, stack, requested, parseDuration(options.timeout))
    if (ended.status?.phase !== 'Succeeded')
      await printStream(write => streamLog(client, ended, { follow: false }, write), process.stderr).catch(error =>
        note(`the log cannot be shown: ${formatError(error).message}`),
      )
    expectSuccess(ended)
    await showPlan(client, ended, options)
  })
}

async function findRun(client: Client, text: string, target: string | undefined, namespace: string): Promise<Run> {
  const found = await getStackOrRun(client, `run/${text.replace(/^runs?\//, '')}`, namespace)
  if (found.kind !== 'run') throw usageError(`expected a Run, got ${JSON.stringify(text)}`, 'use NAME or run/NAME')
  const { run } = found
  if (target !== undefined && (await getStack(client, target, namespace)).metadata.uid !== run.spec.stackRef.uid)
    throw usageError(`run/${run.metadata.name} is of stack/${run.spec.stackRef.name}, not of ${target}`, 'omit the Stack')
  return run
}

async function showPlan(client: Client, run: Run, { output = 'text' }: PlanOptions): Promise<void> {
  const { plan: counts, changed, phase } = run.status ?? {}
  // A Run that did not succeed may not have reported what it had planned.
  const isUnchanged = phase === 'Succeeded' && !changed && counts !== undefined && counts.add + counts.change + counts.destroy === 0
  const diff = isUnchanged ? undefined : await readDiff(client, run)
  if (output === 'json') return print(await serialize(machineReadable(run, diff), 'json'))
  if (diff) process.stdout.write(`${formatDiff(diff, outPaint())}\n\n`)
  print(`stack/${run.spec.stackRef.name}: plan: ${diff ? planText({ ...diff, mode: run.spec.planMode }) : 'no changes'}`)
}

/** `plan` is null where nothing changes. @throws {CliError} if it was too large to be stored. */
function machineReadable(run: Run, diff: StoredDiff | undefined): object {
  const { name, namespace } = run.metadata
  const { engine } = run.spec.stack
  const stack = { namespace, stack: run.spec.stackRef.name, run: name, engine }
  if (!diff) return { ...stack, digest: run.status?.plan?.digest, add: 0, change: 0, destroy: 0, plan: null }
  if (diff.document === undefined)
    throw new CliError(`the machine-readable plan of run/${name} was too large to be stored`, { hint: 'use -o text' })
  const { digest, add, change, destroy, document } = diff
  return { ...stack, digest, add, change, destroy, plan: document }
}
