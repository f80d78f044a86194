import { join } from 'node:path'
import { ArchiveStore, listDependencies } from '../dependencies/index.ts'
import { isInUse, listContent } from '../workspace/index.ts'

/** What is removed as a whole. */
export type CacheEntry = {
  readonly kind: 'Dependencies' | 'Provider' | 'Plugin' | 'Archives'
  /** The directory of the Runs that share it: `tenant-UID` or `namespace-NAME`, with `process-` before it or `shared` for those without a sandbox. Archives: `all`. */
  readonly domain: string
  /** Dependencies: of everything that the packages depend on, 64 hexadecimal digits. Provider and Plugin: `h1:` checksum of the package. Archives: empty. */
  readonly digest: string
  /**
   * Dependencies: the package manager; undefined if the entry is damaged. Provider: such as `registry.opentofu.org/hashicorp/aws/6.0.0/linux_amd64`.
   * Archives: `npm`, the archives of packages that all domains share, as one entry. Plugin: such as `pulumi/default/random/4.21.1/linux-x64`, with `default` or a digest of the server that a Stack names.
   */
  readonly name: string | undefined
  readonly files: number
  /** On disk. */
  readonly bytes: number
  /** Milliseconds since the epoch. */
  readonly usedAtMs: number
  readonly isInUse: boolean
  readonly path: string
}

/** Of Pulumi. A platform of Terraform and OpenTofu has an underscore. */
const isPluginKey = (key: string) => /^pulumi(\/[^/]+){3}\/[^/_]+-[^/_]+$/.test(key)

/** The directories of the stores below the cache directory of a worker. */
export const storesOf = (cacheDir: string) => ({ dependencies: join(cacheDir, 'dependencies'), content: join(cacheDir, 'content') })

/** Of all domains. */
export const archivesOf = (cacheDir: string) =>
  new ArchiveStore({ directory: join(storesOf(cacheDir).dependencies, 'archives'), domain: '' })

/**
 * All entries of a cache directory, the least recently used first; none if it does not exist. An entry that a process in another container
 * may use counts as in use.
 * @throws the error of the file system if the directory cannot be read.
 */
export async function listCache(cacheDir: string): Promise<CacheEntry[]> {
  const directories = storesOf(cacheDir)
  const [dependencies, content, archives] = await Promise.all([
    listDependencies(directories.dependencies),
    listContent(directories.content),
    archivesOf(cacheDir).summarize(),
  ])
  const entries = [
    ...dependencies.map(({ record, ...entry }) => ({
      ...entry,
      kind: 'Dependencies' as const,
      name: record?.manager,
      files: record?.files ?? 0,
    })),
    ...content.map(({ key, ...entry }) => ({ ...entry, kind: isPluginKey(key) ? ('Plugin' as const) : ('Provider' as const), name: key })),
    ...(archives ? [{ ...archives, kind: 'Archives' as const, domain: 'all', digest: '', name: 'npm' }] : []),
  ]
  // An archive is copied, never used in its place.
  const isUsed = async ({ kind, path }: { kind: string; path: string }) => kind !== 'Archives' && (await isInUse(path).catch(() => false))
  const listed = await Promise.all(entries.map(async entry => ({ ...entry, isInUse: await isUsed(entry) })))
  return listed.sort((a, b) => a.usedAtMs - b.usedAtMs)
}
