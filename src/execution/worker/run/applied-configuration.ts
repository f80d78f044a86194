import { oarlockCommand, type Run, type StackSource } from '../../../api/index.ts'
import type { Json } from '../../../kubernetes/object/index.ts'
import { getOwn, setOwn } from '../../../kubernetes/object/index.ts'
import type { StateClient } from '../../../stores/state/index.ts'
import { type ArchivedEntry, archiveSource, type RunDirectory, type SourceError } from '../../workspace/index.ts'
import { kubeconfigSecrets, type RunInputs, stringsIn } from './inputs.ts'

/**
 * What a Run applied, which the state store keeps for the destruction: the present source may be broken then, and Secrets and ConfigMaps may be
 * deleted. It is encrypted like the state, whose worker could read all of it anyway.
 */
export type AppliedConfiguration = {
  readonly format: 1
  readonly runName: string
  /** Without the content of inline files. */
  readonly source: StackSource
  readonly revision: string
  /** Undefined for a repository, which has the commit, and for a source that is too large. */
  readonly files?: readonly ArchivedEntry[] | undefined
  readonly inputs: Pick<RunInputs, 'variables' | 'sensitiveNames' | 'env' | 'secretEnvNames' | 'kubeconfig'> &
    Partial<Pick<RunInputs, 'engineSecrets'>>
}

/** What the Run is about to apply. No engine may have run in its directory. */
export async function captureConfiguration(run: Run, directory: Pick<RunDirectory, 'files' | 'work'>, inputs: RunInputs): Promise<Buffer> {
  const { source } = run.spec.stack
  const { variables, sensitiveNames, env, secretEnvNames, kubeconfig, engineSecrets } = inputs
  const configuration: AppliedConfiguration = {
    format: 1,
    runName: run.metadata.name,
    source: source.inline ? { inline: { files: {} } } : source,
    revision: run.spec.revision,
    ...(!source.git && { files: await archiveSource(directory.files, directory.work) }),
    inputs: {
      ...{ variables, sensitiveNames, env, secretEnvNames },
      ...(kubeconfig !== undefined && { kubeconfig }),
      ...(Object.keys(engineSecrets).length > 0 && { engineSecrets }),
    },
  }
  return Buffer.from(JSON.stringify(configuration))
}

/** What was applied last, for a Run that destroys it; undefined if that is not kept, or the Run uses what its spec names. */
export async function readAppliedConfiguration(
  { spec }: Run,
  state: Pick<StateClient, 'getConfiguration'>,
  signal: AbortSignal,
): Promise<AppliedConfiguration | undefined> {
  if (spec.configuration !== 'Applied') return undefined
  const bytes = await state.getConfiguration({ signal })
  const found = bytes && (JSON.parse(bytes.toString('utf8')) as AppliedConfiguration)
  return found?.format === 1 ? found : undefined
}

/**
 * The inputs that were applied, with the present value of those that are secret and still exist: credentials are renewed, while another region or account
 * would make the resources look as if they were deleted.
 */
export function mergeInputs(applied: AppliedConfiguration['inputs'], present: RunInputs): RunInputs {
  const merged: RunInputs = { ...present, ...applied, variables: {}, env: { ...applied.env } }
  for (const [name, value] of Object.entries(applied.variables)) setOwn(merged.variables, name, value)
  for (const name of applied.sensitiveNames) {
    const value = present.sensitiveNames.includes(name) ? getOwn(present.variables, name) : undefined
    if (value !== undefined) setOwn(merged.variables, name, value)
  }
  for (const name of applied.secretEnvNames) if (present.secretEnvNames.includes(name)) merged.env[name] = present.env[name]!
  merged.engineSecrets = { ...applied.engineSecrets, ...present.engineSecrets }
  if (present.kubeconfig !== undefined) merged.kubeconfig = present.kubeconfig
  const secretValues = (inputs: AppliedConfiguration['inputs']) => [
    ...inputs.sensitiveNames.flatMap(name => stringsIn(getOwn(inputs.variables, name) as Json)),
    ...inputs.secretEnvNames.map(name => inputs.env[name]!),
    ...kubeconfigSecrets(inputs.kubeconfig ?? ''),
    ...Object.values(inputs.engineSecrets ?? {}),
  ]
  merged.secrets = [...new Set([...present.secrets, ...secretValues(applied)])]
  return merged
}

/** The source of the repository as it was applied; its credentials are the present ones. */
export function appliedSource({ source, revision }: AppliedConfiguration, { spec }: Run): { source: StackSource; revision: string } {
  const { git } = spec.stack.source
  const { secretRef: _, ...repository } = source.git ?? { url: '' }
  if (!source.git || git?.url !== source.git.url) return { source, revision }
  return { source: { git: { ...repository, ...(git.secretRef && { secretRef: git.secretRef }) } }, revision }
}

/** What was applied last can no longer be read. */
export class AppliedSourceError extends Error {
  override readonly name = 'AppliedSourceError'
  readonly reason = 'AppliedSourceUnavailable'
  readonly retryable: boolean

  constructor(run: Run, cause: SourceError) {
    const { name } = run.spec.stackRef
    const remedy = `${oarlockCommand('destroy', { name, namespace: run.metadata.namespace })} --use-current-source`
    super(`the source that was applied last cannot be read: ${cause.message}; restore it, or destroy with the present one: ${remedy}`, {
      cause,
    })
    this.retryable = cause.retryable
  }
}
