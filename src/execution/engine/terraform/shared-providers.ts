import { join, relative } from 'node:path'
import { completeFlights, type Flight, takeOrContinue } from '../../workspace/index.ts'
import { networkVariables } from '../download-environment.ts'
import type { WarmContext } from '../engine.ts'
import { type ProviderSource, writeDownloadSeconds } from '../provider-usage.ts'
import { dependencyLockName, readDependencyLock, withHashes } from './dependency-lock.ts'
import { downloadProvider, isUsableLock, type WantedProvider } from './download-provider.ts'
import type { Flavor } from './flavor.ts'
import { readModuleFile, rootModuleFiles } from './module-files.ts'
import { linkPackage, type ProviderLinks, packageBudget } from './plugin-cache.ts'
import { requiredProviders } from './required-providers.ts'
import { hasFailedOften, readSharedRecord, validSelection, withFailure, withSelection } from './shared-record.ts'

export type SharedProvidersOptions = {
  flavor: Flavor['name']
  binary: string
  platform: string
  /** The environment of the worker. */
  workerEnv: Readonly<Record<string, string | undefined>>
  /** The plugin cache directory of the Run. */
  own: string
  /** What is linked already; gets what is linked here. */
  links: ProviderLinks
  /** How long to wait for other Runs in total. Default: 5 minutes. */
  maxWaitMs?: number | undefined
}

const maxDownloads = 50
const maxModules = 100
/** A registry that cannot be reached fails after timeouts; one that does not have a provider immediately. */
const slowFailureMs = 5_000
const downloadTimeoutMs = 10 * 60_000
/** Packages of other versions of a provider that a Run gets: a module may exclude the newest one. */
const maxOtherVersions = 10
const maxLockBytes = 4 * 1024 * 1024

/**
 * Links the providers of the configuration that the Run has not got yet: one Run of the trust domain on this host downloads each, as
 * {@link downloadProvider} does, and the others wait for it. What cannot be shared is left to the engine of the Run. Never fails because
 * of a provider; throws when the Run is stopped.
 */
export async function linkSharedProviders(context: WarmContext, options: SharedProvidersOptions): Promise<void> {
  const { contentStore, signal, log, stack, runName } = context
  let wanted: readonly WantedProvider[]
  try {
    wanted = await wantedProviders(context, options)
  } catch (error) {
    log(`providers are not shared: ${(error as Error).message}`)
    return
  }
  const failedHosts = new Set<string>()
  await completeFlights(
    wanted.map(each => flightOf(context, options, each, failedHosts)),
    {
      lock: (name, description) => contentStore.lock(name, description),
      description: `the download by Run ${stack.namespace}/${runName}`,
      ...{ signal, log, maxWaitMs: options.maxWaitMs },
    },
  )
}

/** Those that another Run could download as well, and that no lock file and no earlier Run of the Stack has provided. */
async function wantedProviders(context: WarmContext, options: SharedProvidersOptions): Promise<WantedProvider[]> {
  const { links, platform, workerEnv } = options
  if (await hasOwnInstallation(context, workerEnv)) return []
  const isLinked = (address: string, version: string) => links.linked.has(`${address}/${version}/${platform}`)
  const locked = [...links.locked].filter(([, lock]) => isUsableLock(lock))
  const missing = locked.filter(([address, { version }]) => !isLinked(address, version))
  const required = await requiredByModules(context, options.flavor)
  const unlocked = [...required].filter(([address]) => !locked.some(([each]) => each === address))
  const wanted: WantedProvider[] = [
    ...missing.map(([address, lock]) => ({ address, constraint: '', lock })),
    ...unlocked.map(([address, constraint]) => ({ address, constraint })),
  ]
  return wanted.filter(({ address }) => !hasToken(context, address)).slice(0, maxDownloads)
}

/** Of the root module and the modules in the source that it calls, by address, with all constraints on each. */
async function requiredByModules(context: WarmContext, flavor: Flavor['name']): Promise<Map<string, string>> {
  const required = new Map<string, string>()
  const directories = new Set([context.directory])
  for (const directory of directories) {
    const { providers, modules } = requiredProviders(await rootModuleFiles({ ...context, directory }, flavor), flavor)
    for (const [address, constraint] of providers)
      required.set(address, [...new Set([required.get(address) ?? '', constraint])].filter(Boolean).join(', '))
    for (const source of modules) {
      const path = join(directory, source)
      const isInside = /^\.\.?\//.test(source) && !relative(context.sourceRoot, path).startsWith('..')
      if (isInside && directories.size < maxModules) directories.add(path)
    }
  }
  return required
}

/**
 * Whether the Stack decides how its providers are installed: with a CLI configuration, arguments, a proxy or a directory of packages of its own.
 * Then what it gets is its own.
 */
async function hasOwnInstallation(
  { env, files, directory }: WarmContext,
  workerEnv: SharedProvidersOptions['workerEnv'],
): Promise<boolean> {
  const names = Object.keys(env)
  if (names.some(name => /^(TF_CLI_CONFIG_FILE|TERRAFORM_CONFIG|TF_CLI_ARGS(_init)?|TF_PLUGIN_.*|HOME|XDG_.*)$/.test(name))) return true
  if (networkVariables.some(name => env[name] !== undefined && env[name] !== workerEnv[name])) return true
  return (await files.kindOf(join(directory, 'terraform.d'))) !== undefined
}

/** A registry with a token serves what not everyone may read. */
function hasToken({ env }: WarmContext, address: string): boolean {
  const [host = ''] = address.split('/')
  const normalize = (text: string) => text.toLowerCase().replaceAll('__', '-').replaceAll('_', '.')
  return Object.keys(env).some(name => name.startsWith('TF_TOKEN_') && normalize(name.slice('TF_TOKEN_'.length)) === normalize(host))
}

/** `failedHosts`: registries that took long to fail in this Run, which does not try them again. */
function flightOf(context: WarmContext, options: SharedProvidersOptions, wanted: WantedProvider, failedHosts: Set<string>): Flight {
  const { address, constraint, lock } = wanted
  const [host = ''] = address.split('/')
  const { contentStore, log } = context
  const name = `shared provider ${options.platform} ${address}`
  const version = lock?.version ?? constraint
  const title = `provider ${address}${version === '' ? '' : ` ${version}`}`
  const notShared = (problem: string) => log(`${title} is not shared: ${problem}`)
  /** Of what `take` finds; undefined after this Run has downloaded it. */
  let source: ProviderSource | undefined = 'Cached'
  const take = async () => {
    if (await linkLocked(context, options, wanted, source)) return true
    const record = await readSharedRecord(contentStore, name)
    const selection = validSelection(record, wanted, Date.now())
    if (selection && (await linkSelected(context, options, wanted, selection, source))) {
      if (!lock) await linkOthers(context, options, address, record.packages)
      return true
    }
    return failedHosts.has(host) || hasFailedOften(record, wanted, Date.now())
  }
  const make = async () => {
    const record = await readSharedRecord(contentStore, name)
    const startedMs = performance.now()
    try {
      const { isDownloaded, ...selected } = await download(context, options, wanted, record.packages)
      source = isDownloaded ? undefined : 'Cached'
      await contentStore.writeRecord(name, JSON.stringify(withSelection(record, wanted, selected, Date.now())))
      if (!(await take())) notShared('the package was removed from the cache')
    } catch (error) {
      context.signal.throwIfAborted()
      notShared((error as Error).message)
      if (performance.now() - startedMs > slowFailureMs) failedHosts.add(host)
      await contentStore.writeRecord(name, JSON.stringify(withFailure(record, wanted, Date.now()))).catch(() => {})
    }
  }
  const afterTake = () => {
    // If it is there at the next attempt, another Run has downloaded it meanwhile.
    source = 'Waited'
  }
  return { lock: name, title, take: takeOrContinue(take, { afterTake, onError: notShared }), make }
}

/** Another Run may have added a package with a checksum of the lock file. */
async function linkLocked(
  context: WarmContext,
  { platform, own, links }: SharedProvidersOptions,
  { address, lock }: WantedProvider,
  source: ProviderSource | undefined,
): Promise<boolean> {
  if (!lock) return false
  const key = `${address}/${lock.version}/${platform}`
  for (const checksum of lock.hashes.filter(hash => hash.startsWith('h1:')))
    if (await linkPackage(context, { own, links, key, checksum, source })) return true
  return false
}

/** True also if no link is needed. */
async function linkSelected(
  context: WarmContext,
  { platform, own, links }: SharedProvidersOptions,
  { address, lock }: WantedProvider,
  { version, checksum }: { version: string; checksum?: string },
  source: ProviderSource | undefined,
): Promise<boolean> {
  if (checksum === undefined) return true
  const key = `${address}/${version}/${platform}`
  if (!(await linkPackage(context, { own, links, key, checksum, source }))) return false
  // The engine has verified this package with the checksums of archives in the same lock file, and would add its own checksum.
  if (lock && !lock.hashes.includes(checksum)) await addChecksum(context, address, checksum)
  return true
}

async function addChecksum(context: WarmContext, address: string, checksum: string): Promise<void> {
  const { files, directory } = context
  const text = await readModuleFile(context, dependencyLockName, await files.kindOf(join(directory, dependencyLockName)), maxLockBytes)
  const hashes = readDependencyLock(text ?? '').get(address)?.hashes
  if (text === undefined || !hashes || hashes.includes(checksum)) return
  await files.write(join(directory, dependencyLockName), withHashes(text, address, [checksum, ...hashes]), 0o644)
}

async function linkOthers(
  context: WarmContext,
  { platform, own, links }: SharedProvidersOptions,
  address: string,
  packages: Record<string, string>,
): Promise<void> {
  for (const [version, checksum] of Object.entries(packages).slice(-maxOtherVersions))
    await linkPackage(context, { own, links, key: `${address}/${version}/${platform}`, checksum, source: undefined })
}

/** Returns what the engine has selected, after the package was added to the content store. */
async function download(
  context: WarmContext,
  { platform, binary, workerEnv }: SharedProvidersOptions,
  wanted: WantedProvider,
  packages: Record<string, string>,
): Promise<{ version: string; checksum: string | undefined; isDownloaded: boolean }> {
  const { contentStore, scratch, files, signal, atEnd } = context
  const startedMs = performance.now()
  const available = new Map<string, string>()
  // With a lock file the engine verifies what it downloads.
  for (const [version, checksum] of wanted.lock ? [] : Object.entries(packages).slice(-maxOtherVersions)) {
    const key = `${wanted.address}/${version}/${platform}`
    const found = await contentStore.take(key, checksum)
    if (!found) continue
    atEnd(found.release)
    available.set(key, found.path)
  }
  const limit = AbortSignal.any([signal, AbortSignal.timeout(downloadTimeoutMs)])
  const directory = join(scratch, `download-${globalThis.crypto.randomUUID()}`)
  const result = await downloadProvider(context, { directory, binary, workerEnv, wanted, packages: available, signal: limit })
  limit.throwIfAborted()
  if (result.kind === 'Failed') throw new Error(result.problem)
  const { version, path, key } = result
  if (path === undefined) return { version, checksum: available.has(key) ? packages[version] : undefined, isDownloaded: false }
  if (key !== `${wanted.address}/${version}/${platform}`) throw new Error(`the engine has downloaded ${key}, which is for another platform`)
  const budget = packageBudget(context, limit)
  const maxBytes = budget.bytes
  const checksum = await contentStore.add(key, files, path, budget)
  const seconds = (performance.now() - startedMs) / 1_000
  context.providerUsage.downloaded({ bytes: maxBytes - budget.bytes, seconds })
  await writeDownloadSeconds(contentStore, { key, checksum }, seconds)
  context.log(`cached provider ${key} for the Runs of its trust domain, in ${seconds.toFixed(1)} s`)
  return { version, checksum, isDownloaded: true }
}
