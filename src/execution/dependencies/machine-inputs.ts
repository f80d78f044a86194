import { readdirSync, readFileSync, realpathSync, statSync } from 'node:fs'
import { delimiter, isAbsolute, join } from 'node:path'
import { sha256, truncateText } from '../../kubernetes/util/index.ts'
import { SpawnError } from '../workspace/index.ts'
import { DependencyError } from './dependency-error.ts'
import type { DependencyInput } from './dependency-input.ts'
import { environmentInputs } from './environment-inputs.ts'
import type { InstallContext } from './install-context.ts'
import type { PackageManager } from './managers/package-manager.ts'
import type { DependencyStore } from './store/dependency-store.ts'

const maxVersionChars = 200
const glibcFiles = ['/lib/x86_64-linux-gnu/libc.so.6', '/lib/aarch64-linux-gnu/libc.so.6', '/lib64/libc.so.6', '/usr/lib/libc.so.6']

/** The inputs that are not in the source: programs, platform and variables. `env` is that of the install. */
export async function machineInputs(
  context: InstallContext,
  store: DependencyStore,
  manager: PackageManager,
  env: Readonly<Record<string, string>>,
): Promise<DependencyInput[]> {
  const environment = await environmentInputs(context, manager, env)
  const inputs: DependencyInput[] = [
    ...environment,
    { kind: 'platform', name: `${process.platform}-${process.arch}`, value: await readLibc(context, store, env) },
  ]
  for (const { kind, program, args } of manager.versions) {
    const path = findProgram(program, env) ?? missing(manager, program, env)
    inputs.push({ kind, name: program, value: await readVersion(context, store, manager, path, args, { env, environment }) })
  }
  for (const path of manager.machineFiles) {
    const content = readIfPresent(path)
    if (content) inputs.push({ kind: 'configuration', name: path, value: `sha256:${sha256(content)}` })
  }
  return inputs
}

function findProgram(program: string, env: Readonly<Record<string, string>>): string | undefined {
  const directories = (env.PATH ?? process.env.PATH ?? '').split(delimiter).filter(isAbsolute)
  return directories
    .map(directory => join(directory, program))
    .find(path => {
      const stats = statSync(path, { throwIfNoEntry: false })
      return stats?.isFile() === true && (stats.mode & 0o111) !== 0
    })
}

function missing(manager: PackageManager, program: string, env: Readonly<Record<string, string>>): never {
  const where = env.PATH ?? process.env.PATH ?? ''
  throw notFound(manager, `${program} was not found in PATH ${JSON.stringify(where)}`)
}

const notFound = ({ name, howToInstall }: PackageManager, problem: string, cause?: unknown) =>
  new DependencyError('PackageManagerNotFound', `the dependencies of the project need ${name}: ${problem}; ${howToInstall}`, {
    retryable: false,
    cause,
  })

/** Changes when the file, or the target of a symlink there, is replaced. */
function identityOf(path: string): string {
  const { dev, ino, size, mtimeMs } = statSync(path)
  return [realpathSync(path), dev, ino, size, mtimeMs].join(':')
}

/**
 * What a program prints, kept in the store until its file changes: npm takes a third of a second to print its version. It may depend on the
 * variables, so a Stack does not decide what others read.
 */
async function readVersion(
  context: InstallContext,
  store: DependencyStore,
  manager: PackageManager,
  path: string,
  args: readonly string[],
  { env, environment }: { env: Readonly<Record<string, string>>; environment: readonly DependencyInput[] },
): Promise<string> {
  const identity = identityOf(path)
  // It executes what `packageManager` of the manifest names, which is an input.
  if (/[/\\]corepack[/\\]/.test(identity)) return `corepack ${sha256(identity).slice(0, 12)}`
  const note = `version ${JSON.stringify([identity, args, environment.map(({ name, value }) => [name, value]).sort()])}`
  // A program of the Run has not been chosen by the worker.
  const isKept = !identity.startsWith(`${context.files.root}/`)
  const known = isKept ? await store.readNote(note) : undefined
  if (known !== undefined) return known
  const version = await capture(context, manager, path, args, env)
  if (isKept) await store.writeNote(note, version)
  return version
}

async function capture(
  { run, scratch, signal }: InstallContext,
  manager: PackageManager,
  command: string,
  args: readonly string[],
  env: Readonly<Record<string, string>>,
): Promise<string> {
  const lines: string[] = []
  const errors: string[] = []
  try {
    const { exitCode } = await run({
      ...{ command, args: [...args], cwd: scratch, env: { ...env }, signal },
      onStdoutLine: line => void (lines.length < 10 && lines.push(line.trim())),
      onStderrLine: line => void (errors.length < 10 && errors.push(line.trim())),
    })
    signal.throwIfAborted()
    const version = lines.join(' ').trim().slice(0, maxVersionChars)
    if (exitCode === 0 && version !== '') return version
    const output = truncateText([...errors, ...lines].join(' '), 500)
    throw new DependencyError('DependencyInstallFailed', `${[command, ...args].join(' ')} exited with code ${exitCode}: ${output}`, {
      retryable: true,
    })
  } catch (error) {
    // Such as one that the sandbox does not show.
    if (error instanceof SpawnError && error.reason !== 'SpawnFailed') throw notFound(manager, error.message, error)
    throw error
  }
}

/** The C library that compiled packages are linked with. */
async function readLibc(context: InstallContext, store: DependencyStore, env: Readonly<Record<string, string>>): Promise<string> {
  if (process.platform !== 'linux') return 'system'
  const glibc = glibcFiles.find(path => statSync(path, { throwIfNoEntry: false }) !== undefined)
  if (glibc === undefined) return readdirIfPresent('/lib').some(name => name.startsWith('ld-musl-')) ? 'musl' : 'unknown'
  const note = `version ${JSON.stringify([identityOf(glibc)])}`
  const known = await store.readNote(note)
  if (known !== undefined) return known
  const getconf = findProgram('getconf', { ...env, PATH: '/usr/bin:/bin' })
  const version = getconf === undefined ? `glibc ${sha256(identityOf(glibc)).slice(0, 12)}` : await printLibc(context, getconf)
  await store.writeNote(note, version)
  return version
}

async function printLibc({ run, scratch, signal }: InstallContext, command: string): Promise<string> {
  let version = ''
  await run({
    ...{ command, args: ['GNU_LIBC_VERSION'], cwd: scratch, env: {}, signal },
    onStdoutLine: line => {
      version ||= line.trim()
    },
  })
  signal.throwIfAborted()
  return version || 'glibc'
}

function readIfPresent(path: string): Buffer | undefined {
  try {
    return readFileSync(path)
  } catch {
    return undefined
  }
}

function readdirIfPresent(path: string): string[] {
  try {
    return readdirSync(path)
  } catch {
    return []
  }
}
