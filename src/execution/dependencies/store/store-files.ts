import {
  chmodSync,
  closeSync,
  constants,
  fchmodSync,
  fchownSync,
  fstatSync,
  futimesSync,
  lchownSync,
  lstatSync,
  mkdirSync,
  openSync,
  readlinkSync,
  readSync,
  renameSync,
  rmSync,
  type Stats,
  symlinkSync,
  writeSync,
} from 'node:fs'
import { createSha256, sha256, UnexpectedFileError } from '../../../kubernetes/util/index.ts'
import { type WalkedEntry, walkTree } from '../../workspace/index.ts'

/** What trees of one install may have at most. Directories count as files. */
export type TreeLimits = { bytes: number; files: number }

/** Of an entry: `path` as in the manifest, `at` for system calls. @throws to reject it; returns the target to store. */
export type CheckLink = (link: { path: string; target: string }) => string

export type StoredFiles = { lines: string[]; files: number; bytes: number }

const { O_NOFOLLOW, O_NONBLOCK, O_RDONLY } = constants
const buffer = Buffer.allocUnsafeSlow(1 << 20)

/**
 * Prepares the tree at `root`, which no process can reach any more, to be shared, and returns its manifest: the worker becomes the owner of
 * everything; modes are 0755 and 0644, so there is no setuid bit, and no ACL gives more; a file that has further names, perhaps outside of
 * the tree, is replaced by a copy of its own.
 */
export async function adoptTree(root: string, prefix: string, limits: TreeLimits, checkLink: CheckLink): Promise<StoredFiles> {
  prepareDirectory(root, lstatSync(root))
  return await walkStored(root, prefix, limits, checkLink, (entry, isExecutable, target) => {
    const { at, stats } = entry
    if (target !== undefined) {
      if (readlinkSync(at) !== target) replaceLink(at, target)
      lchownSync(at, ownUid(stats.uid), ownGid(stats.gid))
      return undefined
    }
    if (stats.isDirectory()) {
      prepareDirectory(at, stats)
      return undefined
    }
    makeReadable(at, stats)
    if (stats.nlink > 1) return replaceByCopy(entry, isExecutable)
    const fd = openSync(at, O_RDONLY | O_NOFOLLOW | O_NONBLOCK)
    try {
      if (isForeign(stats)) fchownSync(fd, ownUid(stats.uid), ownGid(stats.gid))
      if ((stats.mode & 0o7777) !== modeOf(isExecutable)) fchmodSync(fd, modeOf(isExecutable))
      return digestOf(fd)
    } finally {
      closeSync(fd)
    }
  })
}

/**
 * Copies the tree at `from`, which processes may still change, to the new directory `to`, as {@link adoptTree} would leave it. The checksums
 * are those of the bytes that were written.
 */
export async function copyForeignTree(
  from: string,
  to: string,
  prefix: string,
  limits: TreeLimits,
  checkLink: CheckLink,
): Promise<StoredFiles> {
  makeDirectory(to)
  return await walkStored(from, prefix, limits, checkLink, ({ path, at, stats }, isExecutable, target) => {
    const copy = `${to}/${path}`
    if (target !== undefined) symlinkSync(target, copy)
    else makeReadable(at, stats)
    if (stats.isDirectory()) makeDirectory(copy)
    return stats.isFile() ? copyFile(at, copy, isExecutable, limits.bytes) : undefined
  })
}

/** The manifest of a tree in the store, computed from its content. */
export async function readTree(root: string, prefix: string): Promise<StoredFiles> {
  const unlimited = { bytes: Number.POSITIVE_INFINITY, files: Number.POSITIVE_INFINITY }
  return await walkStored(
    root,
    prefix,
    unlimited,
    ({ target }) => target,
    ({ at, stats }) => {
      if (!stats.isFile()) return undefined
      const fd = openSync(at, O_RDONLY | O_NOFOLLOW | O_NONBLOCK)
      try {
        return digestOf(fd)
      } finally {
        closeSync(fd)
      }
    },
  )
}

type StoreEntry = (entry: WalkedEntry, isExecutable: boolean, target: string | undefined) => string | undefined

async function walkStored(root: string, prefix: string, limits: TreeLimits, checkLink: CheckLink, store: StoreEntry): Promise<StoredFiles> {
  const stored: StoredFiles = { lines: [], files: 0, bytes: 0 }
  await walkTree(root, {
    maxFiles: limits.files,
    visit: entry => {
      const { path, at, stats } = entry
      const name = JSON.stringify(`${prefix}/${path}`)
      stored.files++
      stored.bytes += stats.blocks * 512
      // A file with holes takes its size when it is copied.
      limits.bytes -= Math.max(stats.size, stats.blocks * 512)
      if (limits.bytes < 0) throw new UnexpectedFileError(`${root}/${path}`, 'does not fit: the tree is larger than the store')
      if (stats.isDirectory()) {
        store(entry, false, undefined)
        stored.lines.push(`d ${name}`)
      } else if (stats.isSymbolicLink()) {
        const target = readlinkSync(at)
        const kept = checkLink({ path, target })
        store(entry, false, kept)
        stored.lines.push(`l ${name} ${JSON.stringify(kept)}`)
      } else if (stats.isFile()) {
        const isExecutable = (stats.mode & 0o111) !== 0
        stored.lines.push(`${isExecutable ? 'x' : 'f'} ${name} ${stats.size} ${store(entry, isExecutable, undefined)}`)
      } else throw new UnexpectedFileError(`${root}/${path}`, 'is neither a file, a directory nor a symlink')
    },
  })
  limits.files -= stored.files
  return stored
}

/** Identifies what is below `root` without reading it: a change of content, mode, owner or links changes it. */
export async function stampsOf(root: string, names: readonly string[]): Promise<string> {
  const hash = createSha256()
  for (const name of names) {
    if (!lstatSync(`${root}/${name}`, { throwIfNoEntry: false })) continue
    await walkTree(`${root}/${name}`, {
      visit: ({ path, stats }) =>
        void hash.update(
          `${JSON.stringify(path)} ${stats.ino} ${stats.size} ${stats.mode} ${stats.uid} ${stats.mtimeMs} ${stats.ctimeMs}\n`,
        ),
    })
  }
  return hash.digest('hex')
}

export const manifestText = (lines: readonly string[]): string => `${lines.join('\n')}\n`
export const manifestDigestOf = (text: string): string => sha256(text)

function prepareDirectory(at: string, stats: Stats): void {
  if (isForeign(stats)) lchownSync(at, ownUid(stats.uid), ownGid(stats.gid))
  if ((stats.mode & 0o7777) !== 0o755) chmodSync(at, 0o755)
}

/** Of what this user owns and may not read. */
function makeReadable(at: string, stats: Stats): void {
  const needed = stats.isDirectory() ? 0o500 : 0o400
  if ((stats.mode & needed) !== needed) chmodSync(at, (stats.mode & 0o777) | needed)
}

/** Whatever the umask of this process is. */
function makeDirectory(path: string): void {
  mkdirSync(path, { mode: 0o755 })
  chmodSync(path, 0o755)
}

const modeOf = (isExecutable: boolean): number => (isExecutable ? 0o755 : 0o644)
const ownUid = (fallback: number): number => process.getuid?.() ?? fallback
const ownGid = (fallback: number): number => process.getgid?.() ?? fallback
const isForeign = ({ uid, gid }: { uid: number; gid: number }): boolean => uid !== ownUid(uid) || gid !== ownGid(gid)

function digestOf(fd: number): string {
  const hash = createSha256()
  for (let length = readSync(fd, buffer, 0, buffer.byteLength, null); length > 0; length = readSync(fd, buffer, 0, buffer.byteLength, null))
    hash.update(buffer.subarray(0, length))
  return hash.digest('hex')
}

/** The time of the last change is kept: compiled Python is valid only with that of its source. */
function copyFile(from: string, to: string, isExecutable: boolean, maxBytes: number): string {
  const source = openSync(from, O_RDONLY | O_NOFOLLOW | O_NONBLOCK)
  try {
    const stats = fstatSync(source)
    if (!stats.isFile()) throw new UnexpectedFileError(to, 'is not a regular file')
    const copy = openSync(to, 'wx', 0o600)
    try {
      const hash = createSha256()
      for (let total = 0; ; ) {
        const length = readSync(source, buffer, 0, buffer.byteLength, null)
        if (length === 0) break
        // It may grow while it is read.
        total += length
        if (total > stats.size + Math.max(0, maxBytes)) throw new UnexpectedFileError(to, 'grew while it was read')
        const piece = buffer.subarray(0, length)
        hash.update(piece)
        for (let at = 0; at < length; ) at += writeSync(copy, piece, at)
      }
      fchmodSync(copy, modeOf(isExecutable))
      futimesSync(copy, stats.mtimeMs / 1_000, stats.mtimeMs / 1_000)
      return hash.digest('hex')
    } finally {
      closeSync(copy)
    }
  } finally {
    closeSync(source)
  }
}

function replaceByCopy({ at }: WalkedEntry, isExecutable: boolean): string {
  const temporary = `${at.slice(0, at.lastIndexOf('/'))}/.${globalThis.crypto.randomUUID()}`
  try {
    const digest = copyFile(at, temporary, isExecutable, 0)
    renameSync(temporary, at)
    return digest
  } catch (error) {
    rmSync(temporary, { force: true })
    throw error
  }
}

function replaceLink(at: string, target: string): void {
  rmSync(at)
  symlinkSync(target, at)
}
