import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { joinPath, type SourceFiles } from '../source-files.ts'
import { ArchiveStore, maxArchiveBytes } from './archive-store.ts'
import { type LockedArchive, lockedArchives } from './locked-archives.ts'

/** Of one install, also of files that are not added: its lock file names them, and a program may have left anything there. */
const defaultReadBytes = 1024 ** 3
/** In this order npm prefers them. */
const lockNames = ['npm-shrinkwrap.json', 'package-lock.json']
/** Of npmrc: with one of them npm may get what not everyone may. */
const credentialSyntax = /(_auth|_authToken|_password|username|certfile|keyfile|^\s*(cert|key)\s*=)/im

/** Of variables that may be credentials, of the Stack and of the worker. */
const credentialNameSyntax = /(auth|passw|token|secret|username|cert|key)/i

/**
 * Whether an install downloads as everyone may: it has no credential, and no Stack decides with `npm_config_*` where npm reads one. `env` is that
 * of the install.
 */
export function isAnonymousInstall({
  env,
  credentialNames,
  workerEnvNames,
  machineFiles,
}: {
  env: Readonly<Record<string, string>>
  credentialNames: readonly string[]
  workerEnvNames: readonly string[]
  machineFiles: readonly string[]
}): boolean {
  const names = Object.keys(env)
  if (names.some(name => credentialNames.includes(name) || credentialNameSyntax.test(name))) return false
  if (names.some(name => /^npm_config_/i.test(name) && !workerEnvNames.includes(name))) return false
  return !machineFiles.some(path => credentialSyntax.test(readIfPresent(path)))
}

function readIfPresent(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}

export type NpmArchivesOptions = {
  /** Of the dependency store. */
  directory: string
  domain: string
  source: SourceFiles
  /** Of the project, relative to the root of the source. */
  root: string
  /** HOME of the install, absolute. */
  home: string
  /** The install has no credential of the Stack or the worker. */
  isAnonymous: boolean
}

/**
 * The archives of an install with npm that other trust domains share: those that its own lock file names by SHA-512. npm looks for an archive by its digest in
 * `_cacache/content-v2` of its cache before it downloads it (https://github.com/npm/cacache).
 */
export class NpmArchives {
  readonly #store: ArchiveStore
  readonly #locked: readonly LockedArchive[]
  readonly #options: NpmArchivesOptions
  readonly #isAnonymous: boolean

  private constructor(options: NpmArchivesOptions, locked: readonly LockedArchive[], isAnonymous: boolean) {
    this.#store = new ArchiveStore({ directory: join(options.directory, 'archives'), domain: options.domain })
    this.#locked = locked
    this.#options = options
    this.#isAnonymous = isAnonymous
  }

  static async open(options: NpmArchivesOptions): Promise<NpmArchives> {
    const { source, root, isAnonymous } = options
    const lockName = await findFirst(lockNames, name => source.exists(joinPath(root, name)))
    const text = lockName === undefined ? undefined : await source.text(joinPath(root, lockName))
    const npmrc = (await source.text(joinPath(root, '.npmrc'))) ?? ''
    return new NpmArchives(options, text === undefined ? [] : lockedArchives(text), isAnonymous && !credentialSyntax.test(npmrc))
  }

  /** Before the install: puts copies of what the host has into the cache of npm. Returns their number. */
  async provide(signal: AbortSignal): Promise<number> {
    const { files } = this.#options.source
    let count = 0
    for (const { digest } of this.#locked) {
      signal.throwIfAborted()
      if (!(await this.#store.has(digest))) continue
      const path = this.#pathOf(digest)
      await files.makeDirectory(dirname(path), 0o755)
      if (await this.#store.copyTo(digest, files, path)) count++
    }
    return count
  }

  /**
   * After the install, when its programs have ended: adds what npm has downloaded, if everyone may download it: from the public registry, by an install
   * without credentials. Returns the number of archives. It stops after `maxReadBytes`.
   */
  async collect(signal: AbortSignal, maxReadBytes = defaultReadBytes): Promise<number> {
    if (!this.#isAnonymous) return 0
    const { files } = this.#options.source
    let count = 0
    let left = maxReadBytes
    for (const { digest, isPublic } of this.#locked) {
      signal.throwIfAborted()
      if (left <= 0) break
      if (!isPublic || (await this.#store.has(digest))) continue
      const limit = Math.min(left, maxArchiveBytes)
      const result = await this.#store.add(digest, files, this.#pathOf(digest), limit).catch(() => undefined)
      left -= result?.readBytes ?? 0
      if (result?.isAdded) count++
    }
    if (count > 0) await this.#store.evict()
    return count
  }

  #pathOf(digest: string): string {
    const parts = [digest.slice(0, 2), digest.slice(2, 4), digest.slice(4)]
    return join(this.#options.home, '.npm/_cacache/content-v2/sha512', ...parts)
  }
}

async function findFirst<T>(items: readonly T[], matches: (item: T) => Promise<boolean>): Promise<T | undefined> {
  for (const item of items) if (await matches(item)) return item
  return undefined
}
