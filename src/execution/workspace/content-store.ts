import { type BigIntStats, chmodSync, writeSync } from 'node:fs'
import { lstat, open, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { bootId, ifMissing, makeDirectories, RootDirectory, sha256 } from '../../kubernetes/util/index.ts'
import { entryPrefix, evictTrees, removeEntry, sealOf } from './content-store-eviction.ts'
import { lockOrHolder, type Release, takeEntry, touch } from './entry-lock.ts'
import { type FileSink, h1Digest, type TreeBudget } from './h1-digest.ts'
import { removeTree } from './run-directory.ts'
import { temporaryName } from './temporary-name.ts'

export type ContentStoreOptions = {
  /** Of the worker, shared by all processes and trust domains. */
  directory: string
  /** A directory: trees are found only with the one that they were added with. */
  domain: string
  /** Records are found only in the trust domain that has written them. Default: `domain`. */
  trustDomain?: string
  /** Bytes that all domains together are reduced to. Default: 10 GiB. */
  maxBytes?: number | undefined
}

const defaultBytes = 10 * 1024 ** 3
/** Of a tree that can be stored: the largest providers have 1 GB. */
const treeLimits: TreeBudget = { bytes: 4 * 1024 ** 3, files: 10_000 }
const maxRecords = 10_000
const maxRecordBytes = 256 * 1024
/** Longer than any work under a lock: see `lock`. */
const maxLockMs = 15 * 60_000

/** What the file system reports of a file that nothing has changed: a change of content, mode or links changes `ctime`. */
type FileStamp = readonly [name: string, size: string, inode: string, modified: string, changed: string]
/** Written after the digest of a tree was verified. Valid until the machine restarts: files may be damaged when it did not shut down. */
type Seal = { bootId: string; files: FileStamp[] }

/**
 * Trees of files by the digest of their content, such as provider plugins: `<directory>/<domain>/<key>/h1-<digest>/`. Only the worker writes:
 * it copies what programs have left, so that nothing that is still open there can change it, and computes the digest from the bytes that it
 * writes. All files get the same mode, so a digest stands for one tree. A sandbox can read `visible`, and change nothing.
 *
 * A tree is copied under a temporary name and renamed, so it is there either completely or not at all, whenever a process ends. Of processes
 * that add the same tree, one is faster, and the others' copies are removed. What a digest names is verified when a tree is first used after
 * each start of the machine; afterwards inode, size and times of its files show that it is unchanged.
 */
export class ContentStore {
  readonly #directory: string
  readonly #domain: string
  readonly #trustDomain: string
  readonly #maxBytes: number

  constructor({ directory, domain, trustDomain = domain, maxBytes = defaultBytes }: ContentStoreOptions) {
    this.#directory = directory
    this.#domain = domain
    this.#trustDomain = trustDomain
    this.#maxBytes = maxBytes
  }

  /** The directory with the trees of the domain, for the programs that use them. */
  get visible(): string {
    return join(this.#directory, this.#domain)
  }

  /** Creates `visible`. */
  prepare(): void {
    makeDirectories(this.#directory, 0o700)
    makeReadableDirectories(this.visible)
  }

  /**
   * Copies a tree that programs may have written into the store. Returns its digest.
   * @throws {UnexpectedFileError} if it is none that can be stored.
   */
  async add(key: string, files: RootDirectory, path: string, budget: TreeBudget = { ...treeLimits }): Promise<string> {
    const parent = this.#parentOf(key)
    this.prepare()
    const temporary = this.#temporary()
    try {
      makeReadableDirectories(temporary)
      const digest = await h1Digest(files, path, budget, name => createFile(temporary, name))
      const entry = join(parent, nameOf(digest))
      if (await renameTo(temporary, entry)) await writeSeal(entry, this.#temporary())
      await evictTrees(this.#directory, this.#maxBytes)
      return digest
    } finally {
      await removeTree(temporary)
    }
  }

  /**
   * The tree with this digest, which is not removed before `release` is called; undefined if it is not in the store. A damaged one is removed;
   * with `isThorough` its content is read in any case.
   */
  async take(key: string, digest: string, { isThorough = false } = {}): Promise<{ path: string; release: Release } | undefined> {
    if (!/^h1:[A-Za-z0-9+/]{43}=$/.test(digest)) return undefined
    const path = join(this.#parentOf(key), nameOf(digest))
    const release = await takeEntry(path)
    if (!release) return undefined
    try {
      if ((!isThorough && (await isUnchanged(path))) || (await this.#verify(path, digest))) {
        await touch(path)
        return { path, release }
      }
      // Also if others use it: they cannot use it any more.
      await removeEntry(path, this.#temporary())
    } catch (error) {
      await release()
      throw error
    }
    await release()
    return undefined
  }

  /** A small text that was stored under `name` for this trust domain. At most 10,000 are kept, by last use. */
  async readRecord(name: string): Promise<string | undefined> {
    const path = this.#recordPath(name)
    const text = await readFile(path, 'utf8').catch(ifMissing(undefined))
    if (text !== undefined) await touch(path).catch(ifMissing(undefined))
    return text
  }

  async writeRecord(name: string, text: string): Promise<void> {
    if (text.length > maxRecordBytes) throw new RangeError(`a record has at most ${maxRecordBytes} characters, got ${text.length}`)
    const path = this.#recordPath(name)
    makeDirectories(dirname(path), 0o700)
    await replaceFile(path, text, this.#temporary())
    await evictRecords(dirname(path))
  }

  /**
   * Locks `name` in this trust domain, for work that saves others the same work: nothing becomes wrong if two processes do it. Returns the
   * `description` of the holder if another caller, of any process, has the lock. A process that has ended loses it, after 15 minutes any.
   */
  async lock(name: string, description: string): Promise<{ unlock: Release } | { holder: string }> {
    const directory = join(this.#directory, 'locks')
    makeDirectories(directory, 0o700)
    const path = join(directory, sha256(JSON.stringify([this.#trustDomain, name])).slice(0, 40))
    return await lockOrHolder(path, { description, maxHoldMs: maxLockMs })
  }

  #recordPath(name: string): string {
    return join(this.#directory, 'records', sha256(JSON.stringify([this.#trustDomain, name])).slice(0, 40))
  }

  #temporary(): string {
    const staging = join(this.#directory, 'staging')
    makeDirectories(staging, 0o700)
    return join(staging, temporaryName(crypto.randomUUID()))
  }

  /** @throws {RangeError} for a key that would leave the directory, or could be taken for a tree. */
  #parentOf(key: string): string {
    const isValid = key.split('/').every(part => /^[\p{L}\p{N}][\p{L}\p{N}._+:~-]{0,199}$/u.test(part) && !part.startsWith(entryPrefix))
    if (!isValid) throw new RangeError(`key must be names separated by "/", got ${JSON.stringify(key)}`)
    return join(this.visible, key)
  }

  async #verify(path: string, digest: string): Promise<boolean> {
    const actual = await h1Digest(new RootDirectory(path), '', { ...treeLimits }).catch(() => undefined)
    if (actual !== digest) return false
    await writeSeal(path, this.#temporary())
    return true
  }
}

/** A directory name: base64 has a slash. */
const nameOf = (digest: string): string => `${entryPrefix}${Buffer.from(digest.slice('h1:'.length), 'base64').toString('hex')}`

/** A new file that everyone can read and execute and no one can write: its mode is not in the digest. */
async function createFile(root: string, name: string): Promise<FileSink> {
  const path = join(root, name)
  makeReadableDirectories(dirname(path))
  const file = await open(path, 'wx', 0o555)
  return {
    write: piece => {
      for (let at = 0; at < piece.byteLength; ) at += writeSync(file.fd, piece, at)
    },
    close: async () => {
      await file.chmod(0o555).finally(() => file.close())
    },
  }
}

/** With mode 0755, whatever the umask of this process is: sandboxes of a worker that is root have another uid. */
function makeReadableDirectories(path: string): void {
  for (const created of makeDirectories(path, 0o755)) chmodSync(created, 0o755)
}

/** False if there is an entry already. Another process removes the parent when it is empty. */
async function renameTo(temporary: string, entry: string): Promise<boolean> {
  for (let attempts = 1; ; attempts++) {
    makeReadableDirectories(dirname(entry))
    try {
      await rename(temporary, entry)
      return true
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException
      if (code === 'ENOTEMPTY' || code === 'EEXIST') return false
      if (code !== 'ENOENT' || attempts === 10) throw error
    }
  }
}

/** Empty where there is none: there a seal is valid forever. */
const currentBootId = () => bootId() ?? ''

async function isUnchanged(entry: string): Promise<boolean> {
  const seal = await readSeal(entry)
  return seal?.bootId === currentBootId() && JSON.stringify(seal.files) === JSON.stringify(await stampsOf(entry))
}

async function readSeal(entry: string): Promise<Seal | undefined> {
  try {
    return JSON.parse(await readFile(sealOf(entry), 'utf8')) as Seal
  } catch {
    return undefined
  }
}

async function writeSeal(entry: string, temporary: string): Promise<void> {
  const seal: Seal = { bootId: currentBootId(), files: await stampsOf(entry) }
  await replaceFile(sealOf(entry), JSON.stringify(seal), temporary)
}

async function replaceFile(path: string, text: string, temporary: string): Promise<void> {
  try {
    await writeFile(temporary, text, { mode: 0o600, flag: 'wx' })
    await rename(temporary, path)
  } catch (error) {
    await rm(temporary, { force: true })
    throw error
  }
}

async function stampsOf(root: string): Promise<FileStamp[]> {
  const entries = await readdir(root, { recursive: true, withFileTypes: true })
  const names = entries.filter(entry => !entry.isDirectory()).map(entry => join(entry.parentPath, entry.name))
  return await Promise.all(names.sort().map(async path => stampOf(path.slice(root.length + 1), await lstat(path, { bigint: true }))))
}

const stampOf = (name: string, { size, ino, mtimeNs, ctimeNs }: BigIntStats): FileStamp => [
  name,
  ...([size, ino, mtimeNs, ctimeNs].map(String) as [string, string, string, string]),
]

/** Removes a tenth of the records when there are too many. */
async function evictRecords(directory: string): Promise<void> {
  const names = await readdir(directory)
  if (names.length <= maxRecords) return
  const used = await Promise.all(
    names.map(async name => ({ name, atMs: (await lstat(join(directory, name)).catch(ifMissing(undefined)))?.mtimeMs ?? 0 })),
  )
  used.sort((a, b) => a.atMs - b.atMs)
  for (const { name } of used.slice(0, names.length - maxRecords * 0.9)) await rm(join(directory, name), { force: true })
}
