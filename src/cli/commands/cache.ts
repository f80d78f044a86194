import { existsSync } from 'node:fs'
import { delimiter, join, resolve } from 'node:path'
import { type EngineName, runResource, stackResource } from '../../api/index.ts'
import { type CacheEntry, listCache, type PruneLimits, pruneCache } from '../../execution/cache/index.ts'
import type { WarmSource, WarmStack } from '../../execution/worker/index.ts'
import { secretResource } from '../../kubernetes/client/index.ts'
import { formatDuration, parseDuration, rfc3339 } from '../../kubernetes/object/index.ts'
import { formatBytes } from '../../kubernetes/util/index.ts'
import { type AccessOptions, dataDirectory, namespaceOf, withClient } from '../access.ts'
import { CliError, usageError } from '../cli-error.ts'
import { countOf } from '../count-of.ts'
import { exitCodes } from '../exit-codes.ts'
import { serialize } from '../output/print-objects.ts'
import { renderTable } from '../output/table.ts'
import { note, print } from '../terminal.ts'

type Options = { data?: string; cacheDir?: string; domain?: string; output?: 'json' | 'yaml' }
type WarmOptions = Options & AccessOptions & { directory?: string; engine?: EngineName; engineEnvironment?: string[]; allowPath?: string[] }
type PruneOptions = Options & { olderThan?: string; maxSize?: number; dryRun?: boolean }

/** `oarlock cache list` */
export async function list(options: Options): Promise<void> {
  const directories = await cacheDirectories(options)
  const lists = await Promise.all(
    directories.map(async directory => ({
      directory,
      entries: inDomain(await read(directory, () => listCache(directory)), options.domain),
    })),
  )
  if (options.output !== undefined) {
    print(
      await serialize({ items: lists.flatMap(({ directory, entries }) => newestFirst(entries).map(itemOf(directory))) }, options.output),
    )
    return
  }
  for (const { directory, entries } of lists) {
    if (entries.length > 0) for (const line of tableOf(entries)) print(line)
    note(`${directory}: ${summaryOf(entries)}`)
  }
}

/** `oarlock cache prune`: the limits apply to each directory. */
export async function prune(options: PruneOptions): Promise<void> {
  const { olderThan, maxSize, domain, dryRun = false, output } = options
  if (olderThan === undefined && maxSize === undefined)
    throw usageError('--older-than or --max-size is required', '"oarlock cache prune --max-size 0" removes all that no Run uses')
  const limits: PruneLimits = {
    ...{ domain, maxBytes: maxSize },
    usedBeforeMs: olderThan === undefined ? undefined : Date.now() - parseDuration(olderThan),
  }
  const directories = await cacheDirectories(options)
  const results = []
  for (const directory of directories) {
    results.push({ directory, ...(await read(directory, () => pruneCache(directory, limits, { isDryRun: dryRun }))) })
  }
  if (output !== undefined) {
    const removed = results.flatMap(({ directory, removed }) => removed.map(itemOf(directory)))
    const freedBytes = results.reduce((sum, result) => sum + result.freedBytes, 0)
    print(await serialize({ dryRun, removed, freedBytes }, output))
    return
  }
  for (const { directory, removed, freedBytes, kept } of results) {
    if (removed.length > 0) for (const line of tableOf(removed)) print(line)
    const verb = dryRun ? 'would be removed' : 'removed'
    note(`${directory}: ${countOf(removed.length, 'item')} ${verb}, ${formatBytes(freedBytes)}; kept: ${summaryOf(kept)}`)
  }
}

/** `oarlock cache warm`, for a directory or for a Stack: the cache directory is the first that exists. */
export async function warm(target: string, options: WarmOptions): Promise<void> {
  const { engineEnvironment = [], output } = options
  const cacheDir = await directoryToFill(options)
  const startedMs = Date.now()
  const abort = new AbortController()
  const stop = (signal: NodeJS.Signals) => abort.abort(new CliError(`interrupted by ${signal}`, { exitCode: exitCodes.interrupted }))
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, stop)
  const { warmCache } = await import('../../execution/worker/index.ts')
  const { OARLOCK_ALLOW_PATHS = '', OARLOCK_SANDBOX_BINDS = '' } = process.env
  const stack = /^stacks?\/([^/]+)$/.exec(target)?.[1]
  const result = await warmCache({
    subject: stack === undefined ? sourceOf(target, options) : await readStackToWarm(stack, options),
    ...{ cacheDir, engineEnvironment, env: process.env, signal: abort.signal, log: note },
    allowPaths: options.allowPath?.map(path => resolve(path)) ?? OARLOCK_ALLOW_PATHS.split(delimiter).filter(Boolean),
    sandboxBinds: OARLOCK_SANDBOX_BINDS.split(':').filter(Boolean),
  }).catch(error => {
    if (abort.signal.aborted) throw abort.signal.reason
    throw isExpected(error) ? new CliError(error.message, { exitCode: exitCodes.failed, cause: error }) : error
  })
  const { domain } = result
  // What is in the cache already was used too.
  const used = inDomain(await read(cacheDir, () => listCache(cacheDir)), undefined).filter(
    entry => entry.usedAtMs >= startedMs - 1_000 && isOfDomain(entry, domain),
  )
  if (output !== undefined) {
    print(await serialize({ engine: result.engine ?? null, domain, items: newestFirst(used).map(itemOf(cacheDir)) }, output))
    return
  }
  if (used.length > 0) for (const line of tableOf(used)) print(line)
  note(`${cacheDir}: ${summaryOf(used)} for Runs of ${domain}`)
}

function sourceOf(source: string, { domain, directory, engine }: WarmOptions): WarmSource {
  if (domain === undefined)
    throw usageError(
      '--domain is required for a directory',
      'name the trust domain of its Runs, such as namespace-team-a, or warm stack/NAME',
    )
  return { source: resolve(source), directory, engine, domain }
}

/** With the rights of the user. @throws {CliError} if the Stack had no Run yet, so that its trust domain is unknown. */
async function readStackToWarm(name: string, options: WarmOptions): Promise<WarmStack> {
  for (const option of ['domain', 'directory', 'engine'] as const)
    if (options[option] !== undefined) throw usageError(`--${option} is for a directory`, `stack/${name} has its own`)
  const { secretsToWarm } = await import('../../execution/worker/index.ts')
  return await withClient(options, async client => {
    const namespace = namespaceOf(client, options)
    const stack = await client.resource(stackResource).get(name, { namespace })
    const { items } = await client.resource(runResource).listAll({ namespace })
    const [assigned] = items
      .filter(({ spec }) => spec.stackRef.uid === stack.metadata.uid && spec.workerName !== undefined)
      .sort((a, b) => b.spec.epoch - a.spec.epoch)
    if (!assigned)
      throw new CliError(`Stack ${namespace}/${name} has had no Run yet, so the trust domain of its Runs is unknown`, {
        exitCode: exitCodes.failed,
        hint: `fetch its packages with its first plan: oarlock plan ${name} -n ${namespace}`,
      })
    const secrets = await Promise.all((await secretsToWarm(stack)).map(each => client.resource(secretResource).get(each, { namespace })))
    const inputs = secrets.map(({ metadata, data = {} }) => ({ name: metadata.name, keys: Object.keys(data), data }))
    return { stack, assigned, secrets: inputs }
  })
}

/** A directory that an option or the environment names may be created: workers use it later. */
async function directoryToFill({ data, cacheDir }: WarmOptions): Promise<string> {
  const isNamed = cacheDir !== undefined || data !== undefined || Boolean(process.env.OARLOCK_CACHE_DIR)
  const [first = ''] = isNamed ? await candidateDirectories(data, cacheDir) : await cacheDirectories({})
  return first
}

/** Providers and plugins of Runs without a sandbox are in one directory. */
const isOfDomain = (entry: CacheEntry, domain: string) =>
  entry.domain === domain || (entry.kind !== 'Dependencies' && domain.startsWith('process-') && entry.domain === 'shared')

const isExpected = (error: unknown): error is Error =>
  error instanceof Error && ['DependencyError', 'EngineError', 'SourceError', 'InputError', 'WorkerOptionError'].includes(error.name)

/**
 * The directories that exist. @throws {CliError} if none does, or the directory that an option names does not, or if no entry is of the domain
 * that an option names.
 */
async function cacheDirectories({ data, cacheDir, domain }: Options): Promise<string[]> {
  if (cacheDir === '') throw usageError('--cache-dir must not be empty', 'name a directory')
  if (cacheDir !== undefined && data !== undefined) throw usageError('--data and --cache-dir exclude each other', 'name one of them')
  const candidates = await candidateDirectories(data, cacheDir)
  const found = [...new Set(candidates)].filter(directory => existsSync(directory))
  if (found.length === 0) {
    const places = candidates.join(', ')
    throw new CliError(`no cache directory found: ${places} ${candidates.length === 1 ? 'does' : 'do'} not exist`, {
      exitCode: exitCodes.dataDirectory,
      hint: 'name the directory of the workers with --cache-dir, or that of "oarlock up" with --data',
    })
  }
  if (domain !== undefined) await expectDomain(found, domain)
  return found
}

async function candidateDirectories(data: string | undefined, cacheDir: string | undefined): Promise<string[]> {
  if (cacheDir !== undefined) return [resolve(cacheDir)]
  if (data !== undefined) return [join(dataDirectory(data), 'cache')]
  if (process.env.OARLOCK_CACHE_DIR) return [resolve(process.env.OARLOCK_CACHE_DIR)]
  const { defaultWorkerDirectory } = await import('../../execution/worker/index.ts')
  return [join(dataDirectory(undefined), 'cache'), join(defaultWorkerDirectory(), 'cache')]
}

async function expectDomain(directories: readonly string[], domain: string): Promise<void> {
  const entries = (await Promise.all(directories.map(directory => read(directory, () => listCache(directory))))).flat()
  const domains = [...new Set(entries.map(entry => entry.domain))].sort()
  if (domains.includes(domain)) return
  throw new CliError(`no package of trust domain ${JSON.stringify(domain)} is cached`, {
    exitCode: exitCodes.notFound,
    hint: domains.length === 0 ? 'nothing is cached' : `cached are packages of ${domains.slice(0, 10).join(', ')}`,
  })
}

/** @throws {CliError} for an error of the file system, naming the directory. */
async function read<T>(directory: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === undefined) throw error
    const isForbidden = code === 'EACCES' || code === 'EPERM'
    throw new CliError(`${directory} cannot be read or changed (${code})`, {
      exitCode: exitCodes.dataDirectory,
      hint: isForbidden ? 'run the command as the user of the workers' : 'check that it is a directory of workers, and its disk',
      cause: error,
    })
  }
}

const inDomain = (entries: readonly CacheEntry[], domain: string | undefined) =>
  entries.filter(entry => domain === undefined || entry.domain === domain)

const newestFirst = (entries: readonly CacheEntry[]) => [...entries].sort((a, b) => b.usedAtMs - a.usedAtMs)

const itemOf =
  (directory: string) =>
  ({ kind, domain, digest, name, files, bytes, usedAtMs, isInUse, path }: CacheEntry) => ({
    ...{ directory, kind, domain, digest, name: name ?? null, files, bytes, lastUsed: rfc3339(usedAtMs), inUse: isInUse, path },
  })

function tableOf(entries: readonly CacheEntry[]): string[] {
  const nowMs = Date.now()
  const rows = newestFirst(entries).map(({ kind, domain, digest, name, files, bytes, usedAtMs, isInUse }) => [
    digestOf(kind, digest),
    packagesOf(kind, name),
    `${files}`,
    formatBytes(bytes),
    isInUse ? 'in use' : ageOf(nowMs - usedAtMs),
    domain,
  ])
  return renderTable(['DIGEST', 'PACKAGES', 'FILES', 'SIZE', 'USED', 'DOMAIN'], rows)
}

/** In its largest unit. */
function ageOf(ms: number): string {
  const unit = [24 * 3_600_000, 3_600_000, 60_000].find(each => ms >= each) ?? 1_000
  return formatDuration(Math.max(0, Math.floor(ms / unit)) * unit)
}

/** `h1:` checksums are base64. */
function digestOf(kind: CacheEntry['kind'], digest: string): string {
  if (kind === 'Archives') return '-'
  return (kind === 'Dependencies' ? digest : Buffer.from(digest.slice('h1:'.length), 'base64').toString('hex')).slice(0, 12)
}

function packagesOf(kind: CacheEntry['kind'], name: string | undefined): string {
  if (name === undefined) return '<damaged>'
  const names = { Dependencies: (manager: string) => manager, Provider: providerName, Plugin: pluginName, Archives: archivesName }
  return names[kind](name)
}

const archivesName = (manager: string): string => `archives of ${manager}`

/** `plugin random 4.21.1` of `pulumi/default/random/4.21.1/linux-x64`. */
function pluginName(key: string): string {
  const [, , name, version] = key.split('/')
  return `plugin ${name} ${version}`
}

/** `hashicorp/aws 6.0.0` of `registry.terraform.io/hashicorp/aws/6.0.0/linux_amd64`. */
function providerName(key: string): string {
  const [, namespace, type, version] = key.split('/')
  return version === undefined ? key : `${namespace}/${type} ${version}`
}

function summaryOf(entries: readonly CacheEntry[]): string {
  const used = entries.filter(({ isInUse }) => isInUse).length
  const size = formatBytes(entries.reduce((sum, { bytes }) => sum + bytes, 0))
  return entries.length === 0 ? 'nothing' : `${countOf(entries.length, 'item')}, ${size}, ${used} in use`
}
