import { join, relative } from 'node:path'
import { oarlockCommand } from '../../../api/index.ts'
import { isJsonObject } from '../../../kubernetes/object/index.ts'
import { makeDirectories, RootDirectory } from '../../../kubernetes/util/index.ts'
import type { EngineContext } from '../engine.ts'
import { EngineError } from '../engine-error.ts'
import { maxStateBytes } from '../file-limits.ts'
import { configuredBackend } from './configured-backend.ts'
import type { Flavor } from './flavor.ts'
import { readState } from './read-state.ts'

/** An override file sets the backend without changing the user's files, of which {@link rejectStateInFiles} accepts none with a backend. */
const overrideFile = 'oarlock_override.tf.json'
/** Where both engines keep the state if no backend is configured. */
const localState = 'terraform.tfstate'
const maxBackendBytes = 1024 * 1024

export function isManaged({ spec }: EngineContext): boolean {
  return spec.state !== 'External'
}

/**
 * A backend that the files configure, or a state among them, may have resources that exist already. With an empty state of its own the next
 * apply would create all of them again. A Destroy Run creates nothing: it destroys what the stored state has.
 * @throws {EngineError} BackendInFiles, StateInFiles
 */
export async function rejectStateInFiles(context: EngineContext, moduleFiles: readonly { name: string; text: string }[]): Promise<void> {
  const { directory, files, isDestroy, stack, statePath } = context
  const hasState = statePath !== undefined && (await files.kindOf(statePath)) === 'file'
  const importCommand = oarlockCommand('state import', stack)
  const backend = configuredBackend(moduleFiles.filter(({ name }) => name !== overrideFile))
  if (backend && !(isDestroy && hasState)) {
    const { file, line, block } = backend
    throw new EngineError(
      'BackendInFiles',
      `${file}${line === undefined ? '' : `:${line}`} configures ${block}, but spec.state of the Stack is Managed, so the resources in that state would be created a second time; keep it with "state: External" in the Stack's spec, or import it with "${importCommand} --from DIR" and then remove the block`,
      { retryable: false },
    )
  }
  const resources = hasState ? 0 : localResources(await files.readText(join(directory, localState), { maxBytes: maxStateBytes }))
  if (resources > 0)
    throw new EngineError(
      'StateInFiles',
      `the source has ${localState} with ${resources} ${resources === 1 ? 'resource' : 'resources'} and the Stack has no state, so they would be created a second time; import it with "${importCommand} --from FILE", or remove the file`,
      { retryable: false },
    )
}

function localResources(text: string | undefined): number {
  try {
    return readState(text).resources
  } catch {
    return 0 // Not a state that an engine could use.
  }
}

/** Overrides the backend of the source with the local state file. @throws {EngineError} InvalidSpec when the environment moves the state. */
export async function overrideBackend(context: EngineContext): Promise<void> {
  const { directory, files, statePath } = context
  if (statePath === undefined) throw new TypeError('statePath is missing: Managed state needs a file')
  rejectEnv(context, ['TF_WORKSPACE', 'TF_DATA_DIR', ...argumentsWithState(context)])
  // This file, copied from a user's working directory, would select another workspace and with it another state.
  await files.remove(join(directory, '.terraform', 'environment'))
  // The path is relative because a saved plan contains it and is applied in the directory of another Run.
  const backend = { terraform: { backend: { local: { path: relative(directory, statePath) } } } }
  await files.write(join(directory, overrideFile), `${JSON.stringify(backend, null, 2)}\n`)
}

/** Arguments of commands, such as TF_CLI_ARGS_apply, that name another file for the state. */
const argumentsWithState = ({ env }: EngineContext): string[] =>
  Object.keys(env).filter(name => name.startsWith('TF_CLI_ARGS') && /(^|\s)["']?--?(state|state-out|backup)\b/.test(env[name] ?? ''))

/** @throws {EngineError} InvalidSpec when one of `names` is set. */
export function rejectEnv({ env }: EngineContext, names: string[]): void {
  const name = names.find(candidate => env[candidate] !== undefined)
  if (name === undefined) return
  throw new EngineError(
    'InvalidSpec',
    `environment variable ${name} is not allowed, because it moves the state to where Oarlock does not find it; remove it from spec.env of the Stack or spec.engineEnvironment of the WorkerPool`,
    { retryable: false },
  )
}

/**
 * An override file of the user that sorts after ours could set the backend again: then the state would be lost with the Run.
 * @throws {EngineError} InvalidConfiguration
 */
export async function checkBackend({ directory, files, statePath }: EngineContext): Promise<void> {
  const text = await files.readText(join(directory, '.terraform', 'terraform.tfstate'), { maxBytes: maxBackendBytes })
  const expectedPath = relative(directory, statePath ?? '')
  const initialized: unknown = text === undefined ? undefined : JSON.parse(text)
  const backend = isJsonObject(initialized) && isJsonObject(initialized.backend) ? initialized.backend : {}
  const config = isJsonObject(backend.config) ? backend.config : {}
  if (backend.type === 'local' && config.path === expectedPath) return
  throw new EngineError(
    'InvalidConfiguration',
    `spec.state is Managed, but an override file of the source sets backend ${JSON.stringify(backend.type ?? 'none')}: remove it, or use state External`,
    { retryable: false },
  )
}

/**
 * Terraform writes `errored.tfstate` when it could not save the state to its backend (for example because the disk was full). That file is
 * the only record of the changes, so it replaces the state. `pushState` runs `state push` with it for the user's own backend.
 * Returns an error message when the state could not be saved.
 */
export async function recoverErroredState(
  context: EngineContext,
  { title, binary }: Flavor,
  pushState: (file: string) => Promise<{ exitCode: number | null }>,
): Promise<string | undefined> {
  const file = 'errored.tfstate'
  const text = await context.files.readText(join(context.directory, file), { maxBytes: maxStateBytes })
  if (text === undefined) return undefined
  if (isManaged(context) && context.statePath !== undefined) {
    await context.files.write(context.statePath, text)
    context.log(`${title} could not save its state; recovered it from ${file} (serial ${readState(text).meta.serial})`)
    return undefined
  }
  context.log(`${title} could not save its state to your backend and wrote ${file}; trying "state push" once`)
  if ((await pushState(file)).exitCode === 0) return undefined
  // One file per Stack (invariant 10): the newest one has everything that earlier ones had.
  makeDirectories(context.cacheDir, 0o700)
  const cache = new RootDirectory(context.cacheDir)
  const path = `errored-states/${context.stack.uid}.tfstate`
  await cache.makeDirectory('errored-states')
  await cache.write(path, text)
  return `the state could not be saved to your backend: it is stored on the worker as ${join(cache.root, path)}; push it with "${binary} state push"`
}
