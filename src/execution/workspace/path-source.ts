import { constants, type Stats } from 'node:fs'
import { lstat, mkdir, open, readdir, readlink, realpath, stat, symlink } from 'node:fs/promises'
import { join } from 'node:path'
import { createSha256 } from '../../kubernetes/util/index.ts'
import { SourceError } from './source-error.ts'
import { maxSourceBytes, maxSourceFiles } from './source-options.ts'
import { isWithin, resolveInside } from './symlinks.ts'

const field = 'spec.source.path.path'
/** Not part of a source: internal data of git and the engines, which would only make each Run's copy larger. */
const ignored = new Set(['.git', '.terraform'])

type TreeEntry = { path: string; kind: 'directory' | 'file' | 'link'; stats: Stats; target?: string }

/**
 * The real path of directory `path`, which must be in one of the allowed roots (symlinks resolved in both).
 * @throws {SourceError} SourceNotAllowed, SourceNotFound
 */
export async function allowedDirectory(path: string, allowPaths: readonly string[], where = field): Promise<string> {
  const roots = (await Promise.all(allowPaths.map(root => realpath(root).catch(() => undefined)))).filter(root => root !== undefined)
  const allowed = allowPaths.length === 0 ? 'none is allowed' : `allowed: ${allowPaths.join(', ')}`
  const message = `${JSON.stringify(path)} is not below an allowed directory (${allowed}); allow it with --allow-path DIR`
  const outside = (): SourceError => new SourceError('SourceNotAllowed', where, message)
  let real: string
  try {
    real = await realpath(path)
  } catch (error) {
    // The error must not reveal whether a path outside of the roots exists.
    if (!allowPaths.some(root => isWithin(path, root))) throw outside()
    throw new SourceError('SourceNotFound', where, `directory ${JSON.stringify(path)} does not exist on this worker`, { cause: error })
  }
  if (!roots.some(root => isWithin(real, root))) throw outside()
  if (!(await stat(real)).isDirectory()) throw new SourceError('SourceNotFound', where, `${JSON.stringify(path)} is not a directory`)
  return real
}

/** A digest of names, sizes, modes and modification times: cheap, and sufficient to detect changes. */
export async function pathRevision(path: string, allowPaths: readonly string[]): Promise<string> {
  return digest(await listTree(await allowedDirectory(path, allowPaths)))
}

/**
 * Copies the directory. Symlinks are copied as symlinks and must point into the directory.
 * @throws {SourceError} SourceChanged when the directory is not at `revision`, or changes during the copy; and as {@link allowedDirectory}.
 */
export async function copyPath(path: string, revision: string, directory: string, allowPaths: readonly string[]): Promise<void> {
  const root = await allowedDirectory(path, allowPaths)
  if (isWithin(directory, root)) {
    throw new SourceError(
      'SourceNotAllowed',
      field,
      `${JSON.stringify(path)} contains the directories of the worker's Runs; use a directory that does not`,
    )
  }
  const entries = await listTree(root)
  const changed = (when: string): SourceError =>
    new SourceError('SourceChanged', field, `${JSON.stringify(path)} changed ${when} this Run; the next Run uses the new files`)
  if (digest(entries) !== revision) throw changed('before')
  for (const entry of entries) {
    if (entry.kind === 'directory') await mkdir(join(directory, entry.path), { recursive: true, mode: 0o755 })
  }
  const files = entries.filter(entry => entry.kind !== 'directory')
  let next = 0
  const copyNext = async (): Promise<void> => {
    for (let entry = files[next++]; entry; entry = files[next++]) {
      if (entry.kind === 'link') await symlink(entry.target!, join(directory, entry.path))
      else await copyFile(join(root, entry.path), join(directory, entry.path), entry)
    }
  }
  try {
    await Promise.all(Array.from({ length: 8 }, copyNext))
    if (digest(await listTree(root)) !== revision) throw changed('during')
  } catch (error) {
    if (error instanceof SourceError) throw error
    throw new SourceError('SourceUnavailable', field, `${JSON.stringify(path)} could not be copied: ${(error as Error).message}`, {
      cause: error,
    })
  }
}

async function copyFile(from: string, to: string, { path, stats }: TreeEntry): Promise<void> {
  // O_NOFOLLOW and O_NONBLOCK: the file may have been replaced by a symlink or a pipe since it was listed.
  const source = await open(from, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
  try {
    const now = await source.stat()
    if (!now.isFile() || now.ino !== stats.ino)
      throw new SourceError('SourceChanged', field, `${JSON.stringify(path)} changed during this Run`)
    const target = await open(to, 'wx', (stats.mode & 0o755) | 0o600)
    try {
      const buffer = Buffer.allocUnsafe(Math.min(Math.max(now.size, 1), 1 << 20))
      // It may grow while it is copied: then its revision has changed.
      for (let total = 0; total <= stats.size; ) {
        const { bytesRead } = await source.read(buffer, 0, buffer.length)
        if (bytesRead === 0) break
        await target.write(buffer, 0, bytesRead)
        total += bytesRead
      }
    } finally {
      await target.close()
    }
  } finally {
    await source.close()
  }
}

async function listTree(root: string): Promise<TreeEntry[]> {
  const entries: TreeEntry[] = []
  let bytes = 0
  const walk = async (parent: string): Promise<void> => {
    for (const name of (await readdir(join(root, parent))).sort()) {
      if (ignored.has(name)) continue
      const path = parent ? `${parent}/${name}` : name
      const stats = await lstat(join(root, path)).catch(() => undefined)
      if (!stats) continue
      if (entries.length >= maxSourceFiles) {
        throw new SourceError(
          'InvalidSource',
          field,
          `${JSON.stringify(root)} has more than ${maxSourceFiles} files; use a directory with fewer`,
        )
      }
      if (stats.isDirectory()) {
        entries.push({ path, kind: 'directory', stats })
        await walk(path)
      } else if (stats.isSymbolicLink()) {
        const target = await readlink(join(root, path))
        if (resolveInside(root, path) === undefined) throw escapingSymlinkError(field, path, target)
        entries.push({ path, kind: 'link', stats, target })
      } else if (stats.isFile()) {
        bytes += stats.size
        if (bytes > maxSourceBytes) {
          throw new SourceError(
            'InvalidSource',
            field,
            `${JSON.stringify(root)} has more than ${maxSourceBytes} bytes; use a smaller directory`,
          )
        }
        entries.push({ path, kind: 'file', stats })
      } else {
        throw new SourceError(
          'InvalidSource',
          field,
          `${JSON.stringify(path)} is a socket, pipe or device; only files, directories and symlinks can be copied`,
        )
      }
    }
  }
  await walk('')
  return entries
}

/** The error for a symlink that points out of its source. */
export function escapingSymlinkError(where: string, path: string, target: string): SourceError {
  const symlink = `symlink ${JSON.stringify(path)} points to ${JSON.stringify(target)}`
  return new SourceError('SourceNotAllowed', where, `${symlink}; symlinks must be relative and stay inside the source`)
}

function digest(entries: readonly TreeEntry[]): string {
  const hash = createSha256()
  for (const { path, kind, stats, target } of entries) {
    const about = kind === 'file' ? [stats.size, stats.mtimeMs, stats.mode & 0o777] : [target ?? '']
    hash.update(`${JSON.stringify([path, kind, ...about])}\n`)
  }
  return `sha256:${hash.digest('hex')}`
}
