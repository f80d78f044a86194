import { chmodSync, constants, copyFileSync, mkdirSync, readlinkSync, symlinkSync, utimesSync } from 'node:fs'
import { dirname, isAbsolute, join, normalize, relative } from 'node:path'
import { type RootDirectory, UnexpectedFileError } from '../../kubernetes/util/index.ts'
import { type RunIsolation, removeTree, walkTree } from '../workspace/index.ts'
import { DependencyError } from './dependency-error.ts'
import { DependencyStore, type StoredTree } from './store/dependency-store.ts'
import type { CheckLink } from './store/store-files.ts'
import type { TreePlace } from './store/tree-record.ts'

/** How a Run got its tree. Installed: it has installed it, and keeps its own files. */
export type AttachedAs = 'BindMount' | 'Reflink' | 'Copy' | 'Installed'

/** The directories of a Run. */
export type AttachTarget = {
  /** The root of the source, absolute. */
  sourceRoot: string
  /** Absolute. */
  scratch: string
  files: RootDirectory
  isolation: Pick<RunIsolation, 'canMount' | 'mount' | 'markSourceChanged'>
}

const { COPYFILE_EXCL, COPYFILE_FICLONE, COPYFILE_FICLONE_FORCE } = constants
const maxProducedBytes = 256 * 1024 ** 2

export const pathOfPlace = ({ sourceRoot, scratch }: Pick<AttachTarget, 'sourceRoot' | 'scratch'>, { base, path }: TreePlace): string =>
  join(base === 'source' ? sourceRoot : scratch, path)

/**
 * Gives a Run a tree of the store, before its programs start: read-only bind mounts, which take no time and no disk, where its programs can get
 * them; otherwise copies, which share their blocks with the store if the file system can (FICLONE). Never hard links: a Run without mounts has
 * the user of the worker, and would write through them. Files that the install has created outside of the trees are copied, and do not
 * replace files of the source.
 * @throws {DependencyError} if the source has something else where a tree belongs.
 */
export async function attachTree(tree: StoredTree, target: AttachTarget): Promise<AttachedAs> {
  const { files, isolation } = target
  const canMount = await isolation.canMount()
  let attached: AttachedAs = 'BindMount'
  for (const [index, place] of tree.record.trees.entries()) {
    const path = pathOfPlace(target, place)
    const source = DependencyStore.treePath(tree, index)
    const kind = await files.kindOf(path)
    if (kind !== undefined && kind !== 'directory') {
      throw new DependencyError(
        'InvalidConfiguration',
        `${place.path} of the source is not a directory, but dependencies are installed there; remove it from the source`,
        {
          retryable: false,
        },
      )
    }
    if (canMount) {
      await files.makeDirectory(path, 0o755)
      isolation.mount({ source, target: path })
      continue
    }
    if (kind) await removeTree(path)
    await files.makeDirectory(dirname(path), 0o755)
    attached = await copyTree(source, path)
  }
  await copyProduced(tree, target)
  isolation.markSourceChanged()
  return attached
}

async function copyTree(from: string, to: string): Promise<'Reflink' | 'Copy'> {
  let canReflink: boolean | undefined
  mkdirSync(to, { mode: 0o755 })
  await walkTree(from, {
    visit: ({ path, at, stats }) => {
      const copy = `${to}/${path}`
      if (stats.isDirectory()) mkdirSync(copy, { mode: 0o755 })
      else if (stats.isSymbolicLink()) symlinkSync(readlinkSync(at), copy)
      else {
        canReflink ??= tryReflink(at, copy)
        if (!canReflink) copyFileSync(at, copy, COPYFILE_EXCL)
        else if (stats.size > 0) copyFileSync(at, copy, COPYFILE_FICLONE)
        chmodSync(copy, stats.mode & 0o777)
        // Compiled Python is valid only with the time of its source.
        utimesSync(copy, stats.mtimeMs / 1_000, stats.mtimeMs / 1_000)
      }
    },
  })
  return canReflink ? 'Reflink' : 'Copy'
}

function tryReflink(from: string, to: string): boolean {
  try {
    copyFileSync(from, to, COPYFILE_EXCL | COPYFILE_FICLONE_FORCE)
    return true
  } catch {
    return false
  }
}

async function copyProduced(tree: StoredTree, { files, sourceRoot }: AttachTarget): Promise<void> {
  const stored = DependencyStore.producedFiles(tree)
  for (const name of tree.record.produced) {
    const path = join(sourceRoot, name)
    if ((await files.kindOf(path).catch(() => 'other')) !== undefined) continue
    const content = await stored.read(name, { maxBytes: maxProducedBytes })
    if (!content) continue
    await files.makeDirectory(dirname(path), 0o755)
    await files.write(path, content, (await stored.isExecutable(name)) ? 0o755 : 0o644)
  }
}

/**
 * Symlinks of a tree must lead to the tree or to the source, as those of workspaces do, or to a program of the machine, as `bin/python` of a
 * virtual environment does: only that is there in each Run. An absolute link into the source becomes a relative one, since each Run has its own path. The
 * worker follows none of them.
 */
export function linkChecker(
  target: Pick<AttachTarget, 'sourceRoot' | 'scratch'>,
  place: TreePlace,
  isProgram = (_path: string, _target: string) => false,
): CheckLink {
  const root = pathOfPlace(target, place)
  const within = place.base === 'source' ? target.sourceRoot : root
  return ({ path, target: link }) => {
    if (isProgram(path, link)) return link
    const directory = dirname(join(root, path))
    const resolved = normalize(isAbsolute(link) ? link : join(directory, link))
    if (resolved !== within && !resolved.startsWith(`${within}/`))
      throw new UnexpectedFileError(
        join(place.path, path),
        `is a symlink to ${link}, which is outside of the source; it would not exist in other Runs`,
      )
    return isAbsolute(link) ? relative(directory, resolved) || '.' : link
  }
}
