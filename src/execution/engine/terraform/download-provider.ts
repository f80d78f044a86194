import { join } from 'node:path'
import { networkVariables } from '../download-environment.ts'
import type { WarmContext } from '../engine.ts'
import { dependencyLockName, type LockedProvider, readDependencyLock } from './dependency-lock.ts'
import { cliConfigurationOf } from './terraform-cli.ts'

/** A provider that an engine downloads for all Runs of a trust domain. */
export type WantedProvider = {
  /** Such as `registry.terraform.io/hashicorp/aws`. */
  address: string
  /** Such as `~> 5.0`; empty: the newest version. */
  constraint: string
  /** Of the lock file that names it: the engine accepts only an archive or package with one of them. */
  lock?: Pick<LockedProvider, 'version' | 'hashes'> | undefined
}

export type DownloadProvider = {
  /** Absolute. Does not exist yet. Programs of the Run can write to it. */
  directory: string
  binary: string
  /** The environment of the worker, not of the Stack. */
  workerEnv: Readonly<Record<string, string | undefined>>
  wanted: WantedProvider
  /** Absolute paths of packages that need no download, by key such as `registry.terraform.io/hashicorp/aws/6.0.0/linux_amd64`. */
  packages: ReadonlyMap<string, string>
  signal: AbortSignal
}

export type DownloadResult =
  /** `path`: the directory of the package, if it was downloaded; else it is one of `packages`, or served unpacked by a mirror. */
  { kind: 'Selected'; version: string; path: string | undefined; key: string } | { kind: 'Failed'; problem: string }

const maxLockBytes = 4 * 1024 * 1024
const maxProblemLines = 20
const versionSyntax = /^[0-9A-Za-z][0-9A-Za-z.+-]{0,99}$/
const hashSyntax = /^(h1|zh):[0-9A-Za-z+/=]{1,100}$/

/**
 * Has the engine select and download one provider, in the isolation of the Run: with a configuration that has nothing but this provider, with the
 * CLI configuration of the worker, and without a file or a variable of the Stack. So the package is what the registry of its address, or the
 * mirror of the worker, serves to everyone, whichever Stack asks for it; the engine verifies its signature, and its checksum if there is a lock file.
 */
export async function downloadProvider(context: WarmContext, options: DownloadProvider): Promise<DownloadResult> {
  const { directory, binary, wanted, packages, signal } = options
  const { files } = context
  const work = join(directory, 'work')
  const plugins = join(directory, 'plugins')
  const home = join(directory, 'home')
  for (const path of [directory, work, plugins, home]) await files.makeDirectory(path, 0o755)
  await files.write(join(work, 'main.tf.json'), configurationOf(wanted), 0o644)
  const lock = lockFileOf(wanted)
  if (lock !== undefined) await files.write(join(work, dependencyLockName), lock, 0o644)
  for (const [key, path] of packages) {
    await files.makeDirectory(join(plugins, key, '..'), 0o755)
    await files.createLink(join(plugins, key), path)
  }
  const problems: string[] = []
  const keep = (line: string) => {
    if (problems.length < maxProblemLines && /\w/.test(line)) problems.push(line.replace(/[│╷╵]/g, '').trim())
  }
  const { exitCode } = await context.run({
    command: binary,
    args: ['init', '-input=false', '-no-color', '-backend=false'],
    cwd: work,
    env: environmentOf(options, { home, plugins, cliConfiguration: await prepareCliConfiguration(context, options) }),
    signal,
    onStdoutLine: () => {},
    onStderrLine: keep,
  })
  if (exitCode !== 0) return { kind: 'Failed', problem: problems.join(' ') || `init ended with exit code ${exitCode}` }
  const written = (await files.readText(join(work, dependencyLockName), { maxBytes: maxLockBytes })) ?? ''
  const { version = '' } = readDependencyLock(written).get(wanted.address) ?? {}
  if (!versionSyntax.test(version)) return { kind: 'Failed', problem: 'init wrote no lock file with the provider' }
  const [platform = ''] = await platformsIn(context, join(plugins, wanted.address, version))
  const key = `${wanted.address}/${version}/${platform}`
  const isDownloaded = platform !== '' && (await files.kindOf(join(plugins, key))) === 'directory'
  return { kind: 'Selected', version, path: isDownloaded ? join(plugins, key) : undefined, key }
}

/** OpenTofu has lock files next to the packages. */
async function platformsIn({ files }: WarmContext, directory: string): Promise<string[]> {
  return (await files.list(directory))
    .filter(({ kind, name }) => kind !== 'file' && /^[a-z0-9]+_[a-z0-9]+$/.test(name))
    .map(({ name }) => name)
}

/** JSON, in which a requirement is not a template. */
function configurationOf({ address, constraint, lock }: WantedProvider): string {
  const version = lock ? `= ${lock.version}` : constraint
  return JSON.stringify({ terraform: { required_providers: { wanted: { source: address, ...(version !== '' && { version }) } } } })
}

/** Undefined without one. */
function lockFileOf({ address, lock }: WantedProvider): string | undefined {
  if (!lock) return undefined
  const hashes = lock.hashes.filter(hash => hashSyntax.test(hash))
  return `provider ${JSON.stringify(address)} {\n  version = ${JSON.stringify(lock.version)}\n  hashes = [\n${hashes.map(hash => `    "${hash}",\n`).join('')}  ]\n}\n`
}

/** What is in the lock file, where only this can be in the generated one. */
export const isUsableLock = ({ version, hashes }: Pick<LockedProvider, 'version' | 'hashes'>): boolean =>
  versionSyntax.test(version) && hashes.some(hash => hashSyntax.test(hash))

/**
 * That of the worker. Without one, a file that excludes the directories in which engines look for providers by default: in the home directory, for
 * example, which a Stack could fill.
 */
async function prepareCliConfiguration({ files, inputs }: WarmContext, { workerEnv }: DownloadProvider): Promise<string> {
  const own = cliConfigurationOf(workerEnv)
  if (own !== undefined) return own
  const path = join(inputs, 'download.tfrc')
  await files.write(path, 'provider_installation {\n  direct {}\n}\n', 0o644)
  return path
}

function environmentOf(
  { workerEnv }: DownloadProvider,
  { home, plugins, cliConfiguration }: { home: string; plugins: string; cliConfiguration: string },
): Record<string, string> {
  const network = networkVariables.flatMap(name => (workerEnv[name] === undefined ? [] : [[name, workerEnv[name]] as const]))
  return {
    ...Object.fromEntries(network),
    HOME: home,
    TF_CLI_CONFIG_FILE: cliConfiguration,
    TF_PLUGIN_CACHE_DIR: plugins,
    // Packages in the cache are used without a lock file.
    TF_PLUGIN_CACHE_MAY_BREAK_DEPENDENCY_LOCK_FILE: '1',
    TF_IN_AUTOMATION: '1',
    TF_INPUT: '0',
    CHECKPOINT_DISABLE: '1',
  }
}
