import { chmod, mkdir, readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'

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
  /** For files that are not part of the source: plan, state and outputs. */
  scratch: string
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
  }
  await Promise.all([directory.work, directory.tmp, directory.home, directory.scratch].map(path => mkdir(path, { mode: 0o700 })))
  return { ...directory, remove: () => removeTree(root) }
}

/** Removes a directory tree, including directories without write permission, which module caches contain. */
export async function removeTree(path: string): Promise<void> {
  try {
    await rm(path, { recursive: true, force: true, maxRetries: 3, retryDelay: 20 })
  } catch (error) {
    if (!['EACCES', 'EPERM', 'ENOTEMPTY'].includes((error as NodeJS.ErrnoException).code ?? '')) throw error
    await makeWritable(path)
    await rm(path, { recursive: true, force: true, maxRetries: 5, retryDelay: 50 })
  }
}

async function makeWritable(path: string): Promise<void> {
  await chmod(path, 0o700).catch(() => {})
  const entries = await readdir(path, { withFileTypes: true }).catch(() => [])
  for (const entry of entries) if (entry.isDirectory()) await makeWritable(join(path, entry.name))
}
