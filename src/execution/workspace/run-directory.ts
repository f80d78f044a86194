import { chmod, mkdir, readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'

/** A Run's private place. Everything in it is gone after the Run (invariants 9 and 10). */
export type RunDirectory = {
  /** Mode 0700; the others lie in it. */
  root: string
  /** The source is copied here. */
  work: string
  /** TMPDIR of the engine. */
  tmp: string
  /** HOME of the engine: its caches and login files stay with the Run. */
  home: string
  /** For what stands beside the source: plan, state and outputs files. */
  scratch: string
  /** Removes it with everything in it, read-only directories too. Doing it twice is fine. */
  remove(): Promise<void>
}

/**
 * Makes `<parent>/<runUid>` with its parts, empty. What an earlier attempt left under the same UID is removed first.
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
  const part = (name: string) => join(root, name)
  const directory = { root, work: part('work'), tmp: part('tmp'), home: part('home'), scratch: part('scratch') }
  await Promise.all([directory.work, directory.tmp, directory.home, directory.scratch].map(path => mkdir(path, { mode: 0o700 })))
  return { ...directory, remove: () => removeTree(root) }
}

/** Removes a directory tree, also when it holds directories without write permission, as module caches do. */
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
