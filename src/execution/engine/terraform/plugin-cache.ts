import { dirname, join } from 'node:path'
import { isJsonObject } from '../../../kubernetes/object/index.ts'
import { h1Digest, parseRunLimits, type TreeBudget } from '../../workspace/index.ts'
import type { WarmContext } from '../engine.ts'
import { type ProviderSource, readDownloadSeconds } from '../provider-usage.ts'
import { dependencyLockName, type LockedProvider, readDependencyLock, withHashes } from './dependency-lock.ts'
import { readModuleFile } from './module-files.ts'

/** Downloads of one Run, and entries of a record. */
const maxProviders = 200
/** All packages of a Run are read twice at most. */
const maxRead: TreeBudget = { bytes: 8 * 1024 ** 3, files: 20_000 }
const maxLockBytes = 4 * 1024 * 1024
/** Copying is for later Runs: this one does not wait for it any longer. */
const keepTimeoutMs = 2 * 60_000

/** Providers by key, such as `registry.terraform.io/hashicorp/aws/6.0.0/linux_amd64`, with the `h1:` checksum of their packages. */
type Checksums = Map<string, string>

/** What {@link linkProviders} found. */
export type ProviderLinks = {
  /** In the lock file of the source. */
  locked: ReadonlyMap<string, LockedProvider>
  linked: Checksums
}

/**
 * Fills the plugin cache directory of a Run, `own`, with links to packages in the content store. Another Stack may have put any package
 * there under any name. Therefore a Run gets only those with a checksum that its lock file has and, of providers that its lock file does not
 * have, those that an earlier Run of the same Stack has downloaded. Two concurrent `init` can corrupt Terraform's own cache directory, so each
 * Run has its own; a package that does not match the lock file is never linked, because the engine would write to it.
 */
export async function linkProviders(context: WarmContext, own: string, platform: string): Promise<ProviderLinks> {
  await context.files.makeDirectory(own, 0o755)
  const links: ProviderLinks = { locked: await readLock(context), linked: new Map() }
  try {
    context.contentStore.prepare()
    for (const [key, checksums] of wantedPackages(links.locked, await readRecord(context), platform)) {
      for (const checksum of checksums) if (await linkPackage(context, { own, links, key, checksum, source: 'Cached' })) break
    }
  } catch (error) {
    context.log(`the provider cache is not used: ${(error as Error).message}`)
  }
  return links
}

/**
 * Copies the packages that this Run downloaded into the content store. Those that the lock file of the source does not have are recorded as
 * downloaded by this Stack. The lock file that the engine wrote gets the checksums that it has in a Run with the cached package: the engine
 * applies a plan only with exactly the lock file that it was made with.
 */
export async function keepProviders(
  context: WarmContext,
  own: string,
  { locked }: ProviderLinks,
  { timeoutMs = keepTimeoutMs } = {},
): Promise<void> {
  const downloaded: Checksums = new Map()
  try {
    const budget = packageBudget(context, AbortSignal.any([context.signal, AbortSignal.timeout(timeoutMs)]))
    for (const key of await providerDirectories(context, own)) {
      const [host, namespace, type, version = '', platform] = key.split('/')
      const address = [host, namespace, type].join('/')
      const lock = locked.get(address)
      const isLocked = lock?.version === version && lock.hashes.length > 0
      const beforeBytes = budget.bytes
      const found = isLocked ? await h1Digest(context.files, join(own, key), budget) : undefined
      if (isLocked && found !== undefined && !lock.hashes.includes(found)) {
        context.log(
          `provider ${key} is not cached: ${dependencyLockName} has no h1 checksum of it; add it with "providers lock -platform=${platform}"`,
        )
        context.providerUsage.downloaded({ bytes: beforeBytes - budget.bytes })
        await reduceLock(context, address, [found, ...lock.hashes])
        continue
      }
      const restBytes = budget.bytes
      const checksum = await context.contentStore.add(key, context.files, join(own, key), budget)
      context.providerUsage.downloaded({ bytes: restBytes - budget.bytes })
      context.log(`cached provider ${key}`)
      if (!isLocked) downloaded.set(key, checksum)
      await reduceLock(context, address, isLocked ? lock.hashes : [checksum])
    }
  } catch (error) {
    const isTimeout = (error as Error).name === 'TimeoutError'
    context.log(`the provider cache is not updated: ${isTimeout ? `it took more than ${timeoutMs / 1_000} s` : (error as Error).message}`)
  }
  if (downloaded.size > 0) await writeRecord(context, downloaded).catch(() => {})
}

/**
 * Files with holes or several names are larger than what they take of the Run's limit on disk, and their copies would take their size: what real
 * packages have is within that limit.
 */
export function packageBudget({ spec }: WarmContext, signal: AbortSignal): TreeBudget {
  const { diskBytes = Number.POSITIVE_INFINITY } = parseRunLimits({ disk: spec.resources?.disk })
  return { ...maxRead, bytes: Math.min(maxRead.bytes, 2 * diskBytes), signal }
}

/** Removes linked packages from the content store that are damaged: the next Run downloads them. */
export async function removeDamagedProviders(context: WarmContext, { linked }: ProviderLinks): Promise<void> {
  for (const [key, checksum] of linked) {
    const intact = await context.contentStore.take(key, checksum, { isThorough: true })
    await intact?.release()
    if (!intact) context.log(`removed provider ${key} from the cache: its content has changed`)
  }
}

/** The packages that a Run may use if they are in the store, with the checksums that each may have. */
function wantedPackages(locked: ProviderLinks['locked'], record: Checksums, platform: string): [key: string, checksums: string[]][] {
  const hasHashes = (address: string) => (locked.get(address)?.hashes.length ?? 0) > 0
  const byLock = [...locked].map(([address, { version, hashes }]): [string, string[]] => [
    `${address}/${version}/${platform}`,
    hashes.filter(hash => hash.startsWith('h1:')),
  ])
  const byRecord = [...record].filter(([key]) => key.endsWith(`/${platform}`) && !hasHashes(key.split('/').slice(0, 3).join('/')))
  return [...byLock.slice(0, maxProviders), ...byRecord.map(([key, checksum]): [string, string[]] => [key, [checksum]])]
}

type PackageToLink = {
  own: string
  links: ProviderLinks
  key: string
  checksum: string
  /** Undefined: it is not counted, because this Run has downloaded it or may not need it. */
  source: ProviderSource | undefined
}

/** Links a package of the content store, unless the Run has one with this key. False if the store does not have it. */
export async function linkPackage(
  { contentStore, files, atEnd, providerUsage }: WarmContext,
  { own, links: { linked }, key, checksum, source }: PackageToLink,
): Promise<boolean> {
  if (linked.has(key)) return true
  const found = await contentStore.take(key, checksum)
  if (!found) return false
  atEnd(found.release)
  await files.makeDirectory(dirname(join(own, key)), 0o755)
  await files.createLink(join(own, key), found.path)
  linked.set(key, checksum)
  if (source) providerUsage.found(source, await readDownloadSeconds(contentStore, { key, checksum }))
  return true
}

/** Of the source, or as the engine wrote it. */
async function readLock(context: WarmContext): Promise<Map<string, LockedProvider>> {
  return readDependencyLock((await readLockText(context)) ?? '')
}

async function readLockText(context: WarmContext): Promise<string | undefined> {
  const kind = await context.files.kindOf(join(context.directory, dependencyLockName))
  return await readModuleFile(context, dependencyLockName, kind, maxLockBytes)
}

/** Removes the checksums that only the registry has reported. */
async function reduceLock(context: WarmContext, address: string, hashes: readonly string[]): Promise<void> {
  const text = (await readLockText(context)) ?? ''
  const written = readDependencyLock(text).get(address)?.hashes ?? []
  if (written.length <= hashes.length || !hashes.every(hash => written.includes(hash))) return
  await context.files.write(join(context.directory, dependencyLockName), withHashes(text, address, hashes), 0o644)
}

const recordOf = ({ stack }: WarmContext) => `providers of ${stack.uid}`

async function readRecord(context: WarmContext): Promise<Checksums> {
  const text = await context.contentStore.readRecord(recordOf(context))
  const record: unknown = text === undefined ? {} : JSON.parse(text)
  const entries = isJsonObject(record) ? Object.entries(record) : []
  return new Map(entries.filter((entry): entry is [string, string] => typeof entry[1] === 'string'))
}

/** The newest first. */
async function writeRecord(context: WarmContext, downloaded: Checksums): Promise<void> {
  const earlier = [...(await readRecord(context))].filter(([key]) => !downloaded.has(key))
  const record = Object.fromEntries([...downloaded, ...earlier].slice(0, maxProviders))
  await context.contentStore.writeRecord(recordOf(context), JSON.stringify(record))
}

/** Relative paths of the directories five levels down, host, namespace, type, version and platform: of the first 200 of each level. */
async function providerDirectories({ files }: WarmContext, own: string): Promise<string[]> {
  let level = ['']
  for (let depth = 0; depth < 5; depth++) {
    const next: string[] = []
    for (const directory of level) {
      for (const { name, kind } of await files.list(join(own, directory))) if (kind === 'directory') next.push(join(directory, name))
    }
    level = next.slice(0, maxProviders)
  }
  return level
}
