import type { Run } from '../../../api/index.ts'
import type { StateClient } from '../../../stores/state/index.ts'
import { fetchSource, gitCredentials, type RunDirectory, SourceError, type SourceOptions, writeArchive } from '../../workspace/index.ts'
import {
  type AppliedConfiguration,
  AppliedSourceError,
  appliedSource,
  captureConfiguration,
  mergeInputs,
  readAppliedConfiguration,
} from './applied-configuration.ts'
import { type RunInputs, resolveInputs } from './inputs.ts'
import type { RunLog } from './run-log.ts'

export type RunConfigurationOptions = {
  run: Run
  state: Pick<StateClient, 'getConfiguration' | 'getInputs'>
  signal: AbortSignal
  log: Pick<RunLog, 'append'>
}

/** The inputs of a Run, and what was applied last if it destroys that. @throws {InputError} */
export async function readRunInputs({ run, state, signal, log }: RunConfigurationOptions): Promise<{
  inputs: RunInputs
  applied: AppliedConfiguration | undefined
}> {
  const applied = await readAppliedConfiguration(run, state, signal)
  const objects = await state.getInputs({ signal })
  if (!applied) return { inputs: resolveInputs(run, objects), applied }
  log.append(`uses the source and inputs that Run ${applied.runName} applied`)
  const present = resolveInputs(run, objects, error => log.append(`uses the value that was applied: ${error.message}`))
  return { inputs: mergeInputs(applied.inputs, present), applied }
}

/** Writes the source of a Run into its directory, and resolves with the directory to work in. @throws {SourceError} {AppliedSourceError} */
export async function fetchRunSource(
  run: Run,
  directory: Pick<RunDirectory, 'files' | 'work'>,
  { inputs, applied }: { inputs: RunInputs; applied: AppliedConfiguration | undefined },
  options: Omit<SourceOptions, 'credentials'>,
): Promise<string> {
  if (applied?.files) {
    await writeArchive(directory.files, directory.work, applied.files)
    return directory.work
  }
  const { source, revision } = applied ? appliedSource(applied, run) : { source: run.spec.stack.source, revision: run.spec.revision }
  const secret = `${run.metadata.namespace}/${source.git?.secretRef?.name}`
  const credentials = inputs.gitSecret && gitCredentials(inputs.gitSecret.data, secret, inputs.gitSecret.keys)
  try {
    return (await fetchSource(source, revision, directory.work, { ...options, ...(credentials && { credentials }) })).directory
  } catch (error) {
    throw run.spec.configuration === 'Applied' && error instanceof SourceError ? new AppliedSourceError(run, error) : error
  }
}

/** What the Run is about to apply, for its destruction; undefined if it applies nothing. No engine may have run in its directory. */
export async function configurationToKeep(
  run: Run,
  directory: Pick<RunDirectory, 'files' | 'work'>,
  inputs: RunInputs,
): Promise<Buffer | undefined> {
  const { type, planMode, stack } = run.spec
  // A plan for approval without changes counts as applied.
  const mayApply = type === 'Apply' || (type === 'Plan' && planMode === undefined && stack.approval === 'Manual')
  return mayApply ? await captureConfiguration(run, directory, inputs) : undefined
}
