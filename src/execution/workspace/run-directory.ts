import { chmod, mkdir, readdir, readFile, realpath, rename, rm, unlink } from 'node:fs/promises'
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
  /** As {@link removeTree}. May be called more than once. */
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
 * a path can be. What is mounted below it stays, with the directories above: it belongs to no Run. No program that could change the tree may be running.
 * @throws {Error} with the reason, after everything else was removed.
 */
export async function removeTree(path: string): Promise<void> {
  const mountPoints = await mountPointsBelow(path)
  if (mountPoints.length > 0) {
    await emptyDirectory(path, mountPoints)
    for (const name of await readdir(path, { encoding: 'buffer' })) {
      const entry = Buffer.concat([Buffer.from(`${path}/`), name])
      if (!isAboveMount(entry, mountPoints)) await rm(entry, { recursive: true, force: true })
    }
    throw new Error(`something is mounted on ${mountPoints[0]}; unmount it`)
  }
  try {
    await rm(path, { recursive: true, force: true, maxRetries: 3, retryDelay: 20 })
  } catch (error) {
    // ENOTDIR: of a file that may not be deleted.
    if (!['EACCES', 'EPERM', 'ENOTDIR', 'ENOTEMPTY', 'ENAMETOOLONG'].includes((error as NodeJS.ErrnoException).code ?? '')) throw error
    const firstError = await emptyDirectory(path, [])
    await rm(path, { recursive: true, force: true, maxRetries: 5, retryDelay: 50 }).catch(last => {
      throw firstError ?? last
    })
  }
}

/** As proc(5) describes mountinfo: the fifth field, with spaces and backslashes as octal numbers. Empty on systems without /proc. */
async function mountPointsBelow(path: string): Promise<string[]> {
  const [real, mounts] = await Promise.all([realpath(path).catch(() => path), readFile('/proc/self/mountinfo', 'latin1').catch(() => '')])
  const bytes = Buffer.from(real).toString('latin1')
  return mounts.split('\n').flatMap(line => {
    const point =
      line.split(' ', 5)[4]?.replace(/\\([0-7]{3})/g, (_, octal: string) => String.fromCharCode(Number.parseInt(octal, 8))) ?? ''
    return point.startsWith(`${bytes}/`) ? [join(path, Buffer.from(point.slice(bytes.length), 'latin1').toString())] : []
  })
}

const isAboveMount = (path: Buffer, mountPoints: readonly string[]): boolean =>
  mountPoints.some(point => `${point}/`.startsWith(`${path}/`))

/**
 * Makes each directory writable, moves it to `root` and empties it there, so that no path is long. Names are bytes, not always UTF-8.
 * Resolves to why the first file that remains cannot be deleted.
 */
async function emptyDirectory(root: string, mountPoints: readonly string[]): Promise<unknown> {
  let firstError: unknown
  const pending = [Buffer.from(root)]
  for (let directory = pending.pop(); directory !== undefined; directory = pending.pop()) {
    if (mountPoints.includes(`${directory}`)) continue
    await chmod(directory, 0o700).catch(() => {})
    for (const entry of await readdir(directory, { withFileTypes: true, encoding: 'buffer' }).catch(() => [])) {
      const path = Buffer.concat([directory, Buffer.from('/'), entry.name])
      if (!entry.isDirectory()) {
        await unlink(path).catch(error => {
          firstError ??= error
        })
        continue
      }
      const staysInPlace = directory.equals(Buffer.from(root)) || isAboveMount(path, mountPoints)
      const shallow = staysInPlace ? path : Buffer.from(join(root, `removed-${globalThis.crypto.randomUUID()}`))
      // Moving a directory changes its entry for the parent.
      await chmod(path, 0o700).catch(() => {})
      if (!staysInPlace) await rename(path, shallow).catch(() => {})
      pending.push(shallow)
    }
  }
  return firstError
}
