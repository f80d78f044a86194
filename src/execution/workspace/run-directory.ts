import { chmod, mkdir, readdir, rename, rm, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import { RootDirectory } from '../../kubernetes/util/root-directory.ts'

/** The private directory of a Run, removed with everything in it after the Run (invariants 9 and 10). */
export type RunDirectory = {
  /** Mode 0700; contains the other directories. */
  root: string
  /** The source is copied here. */
  work: string
  /** TMPDIR of the engine. */
  tmp: string
  /** HOME of the engine, so that its caches and login files are removed with the Run. */
  home: string
  /** For files that the engine writes and that are not part of the source: state, outputs, a new plan. */
  scratch: string
  /** For files that the engine reads and, in a sandbox, cannot change: variables, the plan to apply. */
  inputs: string
  /** For files of the worker that the engine, in a sandbox, does not see. */
  private: string
  /** How the worker accesses files that the engine may have changed. */
  files: RootDirectory
  /** Removes it with everything in it, including read-only directories. May be called more than once. */
  remove(): Promise<void>
}

/**
 * Creates `<parent>/<runUid>` with its empty subdirectories. First removes a directory of an earlier attempt with the same UID.
 * @throws {RangeError} if `runUid` is not letters, digits, `-`, `_` or `.`: it becomes a directory name.
 */
export async function createRunDirectory(parent: string, runUid: string): Promise<RunDirectory> {
  if (!/^[A-Za-z0-9][\w.-]{0,127}$/.test(runUid)) {
    throw new RangeError(`runUid must be 1 to 128 letters, digits, "-", "_" or ".", got ${JSON.stringify(runUid)}`)
  }
  const root = join(parent, runUid)
  await mkdir(parent, { recursive: true, mode: 0o700 })
  await removeTree(root)
  await mkdir(root, { mode: 0o700 })
  const subdirectory = (name: string) => join(root, name)
  const directory = {
    root,
    work: subdirectory('work'),
    tmp: subdirectory('tmp'),
    home: subdirectory('home'),
    scratch: subdirectory('scratch'),
    inputs: subdirectory('inputs'),
    private: subdirectory('private'),
  }
  const { root: _, ...subdirectories } = directory
  await Promise.all(Object.values(subdirectories).map(path => mkdir(path, { mode: 0o700 })))
  return { ...directory, files: new RootDirectory(root), remove: () => removeTree(root) }
}

/**
 * Removes a directory tree, including directories without write permission, which module caches contain, and trees that are deeper than
 * a path can be. No program that could change it may be running.
 */
export async function removeTree(path: string): Promise<void> {
  try {
    await rm(path, { recursive: true, force: true, maxRetries: 3, retryDelay: 20 })
  } catch (error) {
    if (!['EACCES', 'EPERM', 'ENOTEMPTY', 'ENAMETOOLONG'].includes((error as NodeJS.ErrnoException).code ?? '')) throw error
    await emptyDirectory(path)
    await rm(path, { recursive: true, force: true, maxRetries: 5, retryDelay: 50 })
  }
}

/** Makes each directory writable, moves it to `root` and empties it there, so that no path is long. */
async function emptyDirectory(root: string): Promise<void> {
  const pending = [root]
  for (let directory = pending.pop(); directory !== undefined; directory = pending.pop()) {
    await chmod(directory, 0o700).catch(() => {})
    for (const entry of await readdir(directory, { withFileTypes: true }).catch(() => [])) {
      const path = join(directory, entry.name)
      if (!entry.isDirectory()) {
        await unlink(path).catch(() => {})
        continue
      }
      const shallow = directory === root ? path : join(root, `removed-${globalThis.crypto.randomUUID()}`)
      // Moving a directory changes its entry for the parent.
      await chmod(path, 0o700).catch(() => {})
      if (shallow !== path) await rename(path, shallow).catch(() => {})
      pending.push(shallow)
    }
  }
}
