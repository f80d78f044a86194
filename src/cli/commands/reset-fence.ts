import { isEnded, oarlockCommand, phaseOf, type Run, runResource, stackResource } from '../../api/index.ts'
import { maxEpoch } from '../../stores/state/index.ts'
import type { AccessOptions } from '../access.ts'
import { CliError, usageError } from '../cli-error.ts'
import { exitCodes } from '../exit-codes.ts'
import { serialize } from '../output/print-objects.ts'
import { requireRights } from '../require-rights.ts'
import { confirm, note, print } from '../terminal.ts'
import { withState } from './state.ts'

type Options = AccessOptions & { epoch?: string; force?: boolean; yes?: boolean; output?: 'json' | 'yaml' }

/** `oarlock state reset-fence STACK`: lets the next Run write where the fence, or the number of the last Run, is too high. */
export async function resetFence(target: string, options: Options): Promise<void> {
  const epoch = parseEpoch(options.epoch)
  await withState(target, options, async ({ client, stack, state, name, namespace }) => {
    await requireRights(
      client,
      { namespace, name },
      [
        { verb: 'update', subresource: 'fence' },
        { verb: 'get', subresource: 'state' },
      ],
      {
        purpose: `resetting the fence of stack/${name}`,
      },
    )
    const runs = (await client.resource(runResource).listAll({ namespace })).items.filter(
      run => run.spec.stackRef.uid === stack.metadata.uid,
    )
    const recorded = stack.status?.lastRunNumber ?? 0
    const lastEpoch = epoch ?? recorded
    if (lastEpoch >= maxEpoch) throw tooHigh(name, lastEpoch, runs)
    rejectHigherRuns(runs, { lastEpoch, name, namespace })
    if (!options.force) rejectActiveRun(runs, { name, namespace })
    const previous = await state.fence()
    const needsReset = previous.minEpoch > lastEpoch + 1
    const result = { namespace, stack: name, previous: { ...previous, lastRunNumber: recorded }, lastRunNumber: lastEpoch }
    if (!needsReset && recorded === lastEpoch) {
      if (options.output) return print(await serialize({ ...result, changed: false }, options.output))
      return note(`the fence of stack/${name} accepts its next Run, number ${lastEpoch + 1}: nothing to reset`)
    }
    if (recorded !== lastEpoch)
      await requireRights(client, { namespace, name }, [{ verb: 'patch', subresource: 'status' }], {
        purpose: `changing the number of the last Run of stack/${name}`,
      })
    note(`the store rejects Runs of stack/${name} below number ${previous.minEpoch}; its last Run has number ${recorded}`)
    await confirm(
      `reset the fence of stack/${name}? Its next Run will have number ${lastEpoch + 1}; Runs up to ${lastEpoch} can no longer write.`,
      options,
    )
    await state.resetFence(lastEpoch, options.force === true)
    if (recorded !== lastEpoch) {
      const { uid, resourceVersion } = stack.metadata
      // Not the status of a Stack that changed meanwhile: a Run may have been created.
      await client
        .resource(stackResource)
        .patchStatus(name, { metadata: { uid }, status: { lastRunNumber: lastEpoch } }, { namespace, resourceVersion })
    }
    if (options.output) return print(await serialize({ ...result, changed: true }, options.output))
    print(`stack/${name}: the fence was reset; the next Run will have number ${lastEpoch + 1}`)
    note(`hint: "${oarlockCommand('run', { name, namespace })}" starts it`)
  })
}

function parseEpoch(text: string | undefined): number | undefined {
  if (text === undefined) return undefined
  if (/^\d{1,10}$/.test(text) && Number(text) < maxEpoch) return Number(text)
  throw usageError(`--epoch must be a whole number below ${maxEpoch}, got ${JSON.stringify(text)}`, 'oarlock state reset-fence --help')
}

function tooHigh(name: string, lastEpoch: number, runs: readonly Run[]): CliError {
  const usual = Math.max(0, ...runs.map(({ spec }) => spec.epoch).filter(epoch => epoch < maxEpoch))
  return new CliError(`the last Run of stack/${name} has number ${lastEpoch}, the highest: there is no next one`, {
    exitCode: exitCodes.rejected,
    hint: `pass --epoch with the number of its last regular Run${usual > 0 ? `; the highest number of the others is ${usual}` : ''}`,
  })
}

type Place = { name: string; namespace: string }

/** The Stack's controller would count on from a Run with a higher number. */
function rejectHigherRuns(runs: readonly Run[], { lastEpoch, name, namespace }: Place & { lastEpoch: number }): void {
  const higher = runs.find(({ spec }) => spec.epoch > lastEpoch)
  if (!higher) return
  const run = higher.metadata.name
  throw new CliError(`run/${run} of stack/${name} has number ${higher.spec.epoch}, above ${lastEpoch}`, {
    exitCode: exitCodes.rejected,
    hint: `delete it first: ${oarlockCommand('delete', { name: `run/${run}`, namespace })}`,
  })
}

function rejectActiveRun(runs: readonly Run[], { name, namespace }: Place): void {
  const active = runs.find(run => !isEnded(run))
  if (!active) return
  const run = active.metadata.name
  throw new CliError(
    `run/${run} of stack/${name} is active (phase ${phaseOf(active)}): after the reset it could no longer save its state`,
    {
      exitCode: exitCodes.rejected,
      hint: `wait for it, cancel it with "${oarlockCommand('cancel', { name: `run/${run}`, namespace })}", or use --force`,
    },
  )
}
