import { delimiter, isAbsolute, join } from 'node:path'
import { isJsonObject } from '../../../kubernetes/object/index.ts'
import { RootDirectory, sha256 } from '../../../kubernetes/util/index.ts'
import { completeFlights, type Flight, parseRunLimits, removeTree, type TreeBudget, takeOrContinue } from '../../workspace/index.ts'
import { networkVariables } from '../download-environment.ts'
import type { WarmContext } from '../engine.ts'
import { fileIdentity } from '../find-executable.ts'
import { type ProviderSource, readDownloadSeconds, writeDownloadSeconds } from '../provider-usage.ts'
import type { PulumiCli } from './pulumi-cli.ts'
import type { RequiredPlugin } from './required-plugins.ts'

/** Where the CLI gets a plugin from: another value of the Stack makes its plugins its own. */
const downloadVariables = [...networkVariables, 'PULUMI_PLUGIN_DOWNLOAD_URL_OVERRIDES']
/** Of the Stack; with them the CLI may download what not everyone may. */
const credentialVariables = /^(GITHUB_TOKEN|GITHUB_PERSONAL_ACCESS_TOKEN|GITLAB_TOKEN|PULUMI_ENABLE_LEGACY_PLUGIN_SEARCH|PULUMI_DEV)$/
const downloadTimeoutMs = 10 * 60_000
/** A newest version is valid for this long: then the CLI asks again. */
const newestMs = 60_000
/** After this number of failures within this time, Runs no longer wait for each other: the CLI of each reports the problem. */
const failureLimit = { count: 2, withinMs: 30_000 }
const maxBytes = 4 * 1024 ** 3
const maxFiles = 10_000
const maxProblemLines = 20

/** What the Runs of a trust domain know about one plugin. */
type PluginRecord = { version?: string; checksum?: string; atMs?: number; failures?: number[] }

/**
 * Puts links to plugins of the content store into `home` of a Run, the PULUMI_HOME of its CLI. One Run of the trust domain on this host
 * downloads each, and the others wait for it. It is the CLI that downloads, in the isolation of the Run, before any program of the Stack runs, with
 * the network variables of the worker, and without a file or a variable of the Stack: so the plugin is what its server has for everyone,
 * whichever Stack asks for it. A server that a Stack names is part of the name of what is shared. What cannot be shared is left to the
 * CLI of the Run. Never fails because of a plugin; throws when the Run is stopped.
 */
export async function linkPlugins(
  context: WarmContext,
  cli: PulumiCli,
  { required, home }: { required: readonly RequiredPlugin[]; home: string },
): Promise<void> {
  const { contentStore, signal, log, stack, runName } = context
  if (hasOwnDownloads(context, cli.env)) return
  try {
    contentStore.prepare()
    const wanted: RequiredPlugin[] = []
    for (const plugin of required) if (!(await isOnPath(context, plugin.name))) wanted.push(plugin)
    await context.providerUsage.measure(() =>
      completeFlights(
        wanted.map(plugin => flightOf(context, cli, plugin, home)),
        {
          lock: (name, description) => contentStore.lock(name, description),
          description: `the download by Run ${stack.namespace}/${runName}`,
          ...{ signal, log },
        },
      ),
    )
  } catch (error) {
    signal.throwIfAborted()
    log(`plugins are not shared: ${(error as Error).message}`)
  }
}

function hasOwnDownloads({ env }: WarmContext, workerEnv: Readonly<Record<string, string | undefined>>): boolean {
  if (Object.keys(env).some(name => credentialVariables.test(name))) return true
  return downloadVariables.some(name => env[name] !== undefined && env[name] !== workerEnv[name])
}

/** The CLI prefers it to any other version. */
async function isOnPath({ env }: WarmContext, name: string): Promise<boolean> {
  for (const directory of (env.PATH ?? process.env.PATH ?? '').split(delimiter).filter(isAbsolute)) {
    if ((await fileIdentity(join(directory, `pulumi-resource-${name}`))) !== '') return true
  }
  return false
}

function flightOf(context: WarmContext, cli: PulumiCli, plugin: RequiredPlugin, home: string): Flight {
  const { contentStore, providerUsage, log, signal } = context
  const platform = `${process.platform}-${process.arch}`
  const name = `pulumi plugin ${JSON.stringify([platform, plugin.name, plugin.version, plugin.server])}`
  const title = `plugin ${plugin.name}${plugin.version === undefined ? '' : ` ${plugin.version}`}`
  const notShared = (problem: string) => log(`${title} is not shared: ${problem}`)
  const keyOf = (version: string) =>
    ['pulumi', plugin.server === undefined ? 'default' : sha256(plugin.server).slice(0, 16), plugin.name, version, platform].join('/')
  /** Of what `take` finds; undefined after this Run has downloaded it. */
  let source: ProviderSource | undefined = 'Cached'
  const take = async () => {
    const record = await readRecord(context, name)
    const { version, checksum, atMs = 0 } = record
    const isValid = plugin.version !== undefined || Math.abs(Date.now() - atMs) < newestMs
    if (isValid && version !== undefined && checksum !== undefined) {
      const found = await contentStore.take(keyOf(version), checksum)
      if (found) {
        context.atEnd(found.release)
        const isNew = await linkPlugin(context, home, `resource-${plugin.name}-v${version}`, found.path)
        if (isNew && source) providerUsage.found(source, await readDownloadSeconds(contentStore, { key: keyOf(version), checksum }))
        return true
      }
    }
    return recentFailures(record).length >= failureLimit.count
  }
  const make = async () => {
    const record = await readRecord(context, name)
    const startedMs = performance.now()
    const directory = join(context.scratch, `download-${globalThis.crypto.randomUUID()}`)
    try {
      const limit = AbortSignal.any([signal, AbortSignal.timeout(downloadTimeoutMs)])
      const { version, path } = await download(context, cli, plugin, { directory, signal: limit })
      const budget = budgetOf(context, limit)
      const limitBytes = budget.bytes
      const checksum = await contentStore.add(keyOf(version), context.files, path, budget)
      const seconds = (performance.now() - startedMs) / 1_000
      source = undefined
      providerUsage.downloaded({ bytes: limitBytes - budget.bytes, seconds })
      await writeDownloadSeconds(contentStore, { key: keyOf(version), checksum }, seconds)
      await contentStore.writeRecord(name, JSON.stringify({ version, checksum, atMs: Date.now() } satisfies PluginRecord))
      log(`cached plugin ${plugin.name} ${version} for the Runs of its trust domain, in ${seconds.toFixed(1)} s`)
      if (!(await take())) notShared('it was removed from the cache')
    } catch (error) {
      signal.throwIfAborted()
      notShared((error as Error).message)
      const failures = [...recentFailures(record), Date.now()]
      await contentStore.writeRecord(name, JSON.stringify({ ...record, failures } satisfies PluginRecord)).catch(() => {})
    } finally {
      await removeTree(directory).catch(() => {})
    }
  }
  const afterTake = () => {
    // If it is there at the next attempt, another Run has downloaded it meanwhile.
    source = 'Waited'
  }
  return { lock: name, title, take: takeOrContinue(take, { afterTake, onError: notShared }), make }
}

async function readRecord({ contentStore }: WarmContext, name: string): Promise<PluginRecord> {
  const text = await contentStore.readRecord(name)
  const record: unknown = text === undefined ? undefined : JSON.parse(text)
  return isJsonObject(record) ? (record as PluginRecord) : {}
}

const recentFailures = ({ failures = [] }: PluginRecord) => failures.filter(atMs => Math.abs(Date.now() - atMs) < failureLimit.withinMs)

function budgetOf({ spec }: WarmContext, signal: AbortSignal): TreeBudget {
  const { diskBytes = Number.POSITIVE_INFINITY } = parseRunLimits({ disk: spec.resources?.disk })
  return { bytes: Math.min(maxBytes, diskBytes), files: maxFiles, signal }
}

/**
 * A directory of the Run with a link to each entry: the CLI ignores directories that are links, and writes when it used one next to it. False if the
 * Run has it.
 */
async function linkPlugin({ files }: WarmContext, home: string, name: string, stored: string): Promise<boolean> {
  const directory = join(home, 'plugins', name)
  if ((await files.kindOf(directory)) !== undefined) return false
  await files.makeDirectory(directory, 0o755)
  for (const { name: entry } of await new RootDirectory(stored).list()) await files.createLink(join(directory, entry), join(stored, entry))
  return true
}

async function download(
  context: WarmContext,
  cli: PulumiCli,
  { name, version, server }: RequiredPlugin,
  { directory, signal }: { directory: string; signal: AbortSignal },
): Promise<{ version: string; path: string }> {
  const { files } = context
  const [work, home, pulumiHome] = [join(directory, 'work'), join(directory, 'home'), join(directory, 'pulumi')]
  for (const path of [directory, work, home, pulumiHome]) await files.makeDirectory(path, 0o755)
  const problems: string[] = []
  const keep = (line: string) => {
    if (problems.length < maxProblemLines && /\w/.test(line)) problems.push(line.trim())
  }
  const network = downloadVariables.flatMap(variable => {
    const value = cli.env[variable]
    return value === undefined ? [] : [[variable, value] as const]
  })
  const { path: command } = await cli.find()
  const { exitCode } = await context.run({
    ...{ command, cwd: work, signal },
    args: [
      ...['plugin', 'install', 'resource', name, ...(version === undefined ? [] : [version])],
      ...[...(server === undefined ? [] : ['--server', server]), '--non-interactive', '--color', 'never'],
    ],
    env: {
      ...Object.fromEntries(network),
      ...{ HOME: home, PULUMI_HOME: pulumiHome, PULUMI_SKIP_UPDATE_CHECK: 'true' },
      // The name has been resolved by the package that needs it.
      PULUMI_DISABLE_REGISTRY_RESOLVE: 'true',
    },
    onStdoutLine: () => {},
    onStderrLine: keep,
  })
  signal.throwIfAborted()
  if (exitCode !== 0) throw new Error(problems.join(' ') || `"pulumi plugin install" ended with exit code ${exitCode}`)
  const plugins = join(pulumiHome, 'plugins')
  const prefix = `resource-${name}-v`
  const [found] = (await files.list(plugins)).filter(entry => entry.kind === 'directory' && entry.name.startsWith(prefix))
  if (!found) throw new Error('"pulumi plugin install" has installed nothing')
  const installed = found.name.slice(prefix.length)
  // It becomes a part of a path.
  if (!/^[0-9A-Za-z.+-]{1,100}$/.test(installed))
    throw new Error(`"pulumi plugin install" has installed version ${JSON.stringify(installed)}`)
  return { version: installed, path: join(plugins, found.name) }
}
