import { delimiter, join } from 'node:path'
import { type InstalledDependencies, type InstallOptions, installDependencies, type StoredPackages } from '../../dependencies/index.ts'
import type { WarmContext } from '../engine.ts'
import { type PulumiProject, readPolicyPack } from './project-file.ts'
import type { PulumiCli } from './pulumi-cli.ts'

type ProjectOptions = Pick<InstallOptions, 'runtime' | 'manager' | 'virtualEnvironment'>

/** Languages whose programs need no packages, or whose language host gets them while it builds the program. */
const withoutInstall: readonly string[] = ['yaml', 'dotnet', 'java']

export type ProgramPackages = {
  /** Variables that the program and its policy packs need to find their packages. */
  readonly env: Readonly<Record<string, string>>
  /** What the dependency store has of the program. */
  readonly stored?: StoredPackages
}

/**
 * Gives the program and the policy packs what they import, without the credentials of the apply: for nodejs, python and go from the dependency store,
 * for other languages by the CLI. Nothing may have been written into the source before.
 * @throws {DependencyError} {EngineError} InitFailed, InvalidConfiguration
 */
export async function installPackages(context: WarmContext, cli: PulumiCli, project: PulumiProject): Promise<ProgramPackages> {
  const { runtime } = project
  const installEnvironment = context.spec.pulumi?.installEnvironment ?? []
  const packs = await installPolicyPacks(context)
  const options = dependencyOptions(project)
  if (options) {
    const { directory } = context
    const installed = await installDependencies(context, { directory, installEnvironment, earlier: packs.installed, ...options })
    const python = installed && pythonPackages(context.sourceRoot, options, installed)
    const env = { ...installed?.env, ...python?.env, ...withPath(context, [...(python?.paths ?? []), ...packs.paths]) }
    return { env, ...(installed && { stored: installed }) }
  }
  const env = withPath(context, packs.paths)
  if (withoutInstall.includes(runtime)) return { env }
  const withheld = context.credentialNames.filter(name => !installEnvironment.includes(name)).sort()
  context.log(`installs the packages of the ${runtime} program`)
  const result = await cli.run(context, { args: ['install', '--color', 'never'], env, withheld })
  if (result.exitCode === 0) return { env }
  if (withheld.length > 0) context.log(`the installation did not get ${withheld.join(', ')} (spec.pulumi.installEnvironment)`)
  cli.fail(context, 'InitFailed', 'install', result)
}

/** The CLI runs policy packs of a directory, but does not install what they import. */
async function installPolicyPacks(context: WarmContext): Promise<{ installed: InstalledDependencies[]; paths: string[] }> {
  const { sourceRoot, isDestroy, spec } = context
  const { policyPacks = [], installEnvironment = [] } = spec.pulumi ?? {}
  const installed: InstalledDependencies[] = []
  const paths: string[] = []
  for (const [index, path] of (isDestroy ? [] : policyPacks).entries()) {
    const directory = join(sourceRoot, path)
    const options = dependencyOptions(await readPolicyPack(context, directory, `spec.pulumi.policyPacks[${index}]`, path))
    // The module cache of a Run is that of its program; the language host of Go downloads what a pack needs.
    if (!options || options.runtime === 'go') continue
    const found = await installDependencies(context, { directory, installEnvironment, earlier: installed, ...options })
    if (!found) continue
    installed.push(found)
    paths.push(...pythonPackages(sourceRoot, options, found).paths)
  }
  return { installed, paths }
}

/**
 * How the CLI finds the packages of a Python project: on PATH, unless the project names a virtual environment or a tool. With `toolchain: uv` it looks
 * for `.venv` next to `uv.lock`, which is the root of a workspace. Exported for its test.
 */
export function pythonPackages(
  sourceRoot: string,
  { runtime, manager, virtualEnvironment }: ProjectOptions,
  { trees }: Pick<StoredPackages, 'trees'>,
): { paths: string[]; env: Record<string, string> } {
  const directories = trees.flatMap(({ place }) => (place.base === 'source' ? join(sourceRoot, place.path) : []))
  if (runtime !== 'python' || virtualEnvironment !== undefined) return { paths: [], env: {} }
  const [directory] = directories
  if (manager === 'uv' && directory !== undefined) return { paths: [], env: { UV_PROJECT_ENVIRONMENT: directory } }
  return { paths: manager === undefined ? directories.map(each => join(each, 'bin')) : [], env: {} }
}

const withPath = ({ env }: WarmContext, paths: readonly string[]): Record<string, string> =>
  paths.length === 0 ? {} : { PATH: [...paths, env.PATH ?? process.env.PATH ?? ''].join(delimiter) }

/** What `runtime.options` of the project file says about packages. Undefined for a language that the dependency store does not have. */
export function dependencyOptions({
  runtime,
  runtimeOptions,
}: Pick<PulumiProject, 'runtime' | 'runtimeOptions'>): ProjectOptions | undefined {
  const { packagemanager, toolchain, virtualenv } = runtimeOptions
  switch (runtime) {
    case 'nodejs':
      // "yarn" is either of two programs, which the lock file distinguishes.
      return {
        runtime: 'node',
        ...(packagemanager === 'npm' || packagemanager === 'pnpm' || packagemanager === 'bun' ? { manager: packagemanager } : {}),
      }
    case 'bun':
      return { runtime: 'node', manager: 'bun' }
    case 'python':
      return {
        runtime: 'python',
        ...(toolchain === 'uv' || toolchain === 'poetry' ? { manager: toolchain } : {}),
        ...(typeof virtualenv === 'string' && virtualenv !== '' ? { virtualEnvironment: virtualenv } : {}),
      }
    case 'go':
      return { runtime: 'go' }
    default:
      return undefined
  }
}
