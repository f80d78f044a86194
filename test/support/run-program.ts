import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { homedir } from 'node:os'
import { delimiter, join } from 'node:path'

const launcher = join(import.meta.dirname, '..', '..', 'bin', 'oarlock.js')

export type ProgramResult = {
  code: number | null
  stdout: string
  stderr: string /** Both in the order of output, as in a terminal. */
  text: string
}

/** Runs a program to its end, without a terminal. `env` is added to the environment of this process; undefined removes a variable. */
export async function runProgram(
  program: string,
  args: readonly string[],
  { input = '', env = {}, cwd }: { input?: string; env?: NodeJS.ProcessEnv; cwd?: string } = {},
): Promise<ProgramResult> {
  const child = spawn(program, args, { env: { ...process.env, NO_COLOR: '1', ...env }, cwd })
  const output = { stdout: '', stderr: '', text: '' }
  for (const name of ['stdout', 'stderr'] as const) {
    child[name].setEncoding('utf8').on('data', text => {
      output[name] += text
      output.text += text
    })
  }
  // A program that fails to start does not read its input; its exit code shows that.
  child.stdin.on('error', () => undefined)
  child.stdin.end(input)
  const [code] = (await once(child, 'close')) as [number | null]
  return { code, ...output }
}

export const runOarlock = (args: readonly string[], options: Parameters<typeof runProgram>[2] = {}): Promise<ProgramResult> =>
  runProgram(process.execPath, [launcher, ...args], options)

const isOnPath = (program: string): boolean =>
  (process.env.PATH ?? '').split(delimiter).some(directory => existsSync(join(directory, program)))

/** A value for `skip` of a test: false when the program is on PATH, else the reason. */
export const skipWithout = (program: string): string | false => (isOnPath(program) ? false : `${program} is not on PATH`)

/** Where scripts/build-tofu.sh puts OpenTofu, and the providers that the tests use. */
export const buildCache = process.env.OARLOCK_BUILD_CACHE ?? join(process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache'), 'oarlock')
const builtTofuDirectory = join(buildCache, 'bin')

/**
 * The engine of tests that need Terraform or OpenTofu, whichever the machine has; `skip` is the reason if it has neither.
 * An OpenTofu of scripts/build-tofu.sh is put on the PATH of this process, which the processes of the test inherit.
 */
export const { engine: terraformEngine, skip: skipWithoutTerraformEngine } = findTerraformEngine()

function findTerraformEngine(): { engine: 'terraform' | 'opentofu'; skip: string | false } {
  if (isOnPath('terraform')) return { engine: 'terraform', skip: false }
  return { engine: 'opentofu', skip: findTofu() ? false : 'neither terraform nor tofu was found; scripts/build-tofu.sh builds tofu' }
}

/** Puts an OpenTofu of scripts/build-tofu.sh on the PATH of this process unless there is one. Returns false if the machine has none. */
function findTofu(): boolean {
  if (!isOnPath('tofu') && existsSync(join(builtTofuDirectory, 'tofu'))) {
    process.env.PATH = `${process.env.PATH}${delimiter}${builtTofuDirectory}`
  }
  return isOnPath('tofu')
}

/** A value for `skip` of a test that needs OpenTofu also where Terraform is installed. */
export const skipWithoutTofu = (): string | false => (findTofu() ? false : 'tofu was not found; scripts/build-tofu.sh builds it')
