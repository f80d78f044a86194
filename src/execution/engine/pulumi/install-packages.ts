import { delimiter, join } from 'node:path'
import { installDependencies } from '../../dependencies/index.ts'
import type { EngineContext } from '../engine.ts'
import type { PulumiProject } from './project-file.ts'
import type { PulumiCli } from './pulumi-cli.ts'

type Options = Parameters<typeof installDependencies>[1]

/** Languages whose programs need no packages, or whose language host gets them while it builds the program. */
const withoutInstall: readonly string[] = ['yaml', 'dotnet', 'java']

/**
 * Gives the program what it imports, without the credentials of the apply: for nodejs, python and go from the dependency store, for other languages
 * by the CLI. Nothing may have been written into the source before.
 * @returns variables that the program needs to find its packages.
 * @throws {DependencyError} {EngineError} InitFailed
 */
export async function installPackages(context: EngineContext, cli: PulumiCli, project: PulumiProject): Promise<Record<string, string>> {
  const { runtime } = project
  const options = dependencyOptions(project)
  const installEnvironment = context.spec.pulumi?.installEnvironment ?? []
  if (options) {
    const installed = await installDependencies(context, { directory: context.directory, installEnvironment, ...options })
    if (!installed) return {}
    const isFoundByPath = options.runtime === 'python' && options.virtualEnvironment === undefined && options.manager === undefined
    const binaries = join(context.directory, '.venv', 'bin')
    const path = `${binaries}${delimiter}${context.env.PATH ?? process.env.PATH ?? ''}`
    return { ...installed.env, ...(isFoundByPath && { PATH: path }) }
  }
  if (withoutInstall.includes(runtime)) return {}
  const withheld = context.credentialNames.filter(name => !installEnvironment.includes(name)).sort()
  context.log(`installs the packages of the ${runtime} program`)
  const result = await cli.run(context, { args: ['install', '--color', 'never'], env: {}, withheld })
  if (result.exitCode === 0) return {}
  if (withheld.length > 0) context.log(`the installation did not get ${withheld.join(', ')} (spec.pulumi.installEnvironment)`)
  cli.fail(context, 'InitFailed', 'install', result)
}

/** What `runtime.options` of the project file says about packages. Undefined for a language that the dependency store does not have. */
export function dependencyOptions({
  runtime,
  runtimeOptions,
}: Pick<PulumiProject, 'runtime' | 'runtimeOptions'>): Pick<Options, 'runtime' | 'manager' | 'virtualEnvironment'> | undefined {
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
