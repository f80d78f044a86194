import { randomBytes } from 'node:crypto'
import { closeSync, existsSync, openSync, renameSync, rmSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { copyLockedDatabase } from '../../util/index.ts'
import { toStartError } from './database.ts'
import { inspect } from './inspect.ts'
import { syncPath } from './secret-file.ts'
import { ServerStartError } from './start-error.ts'

/** The content of a finished backup. */
export type BackupSummary = {
  readonly path: string
  readonly bytes: number
  readonly objects: number
  /** The newest resource version in it: it contains every write up to this one. */
  readonly revision: number
  /** Number of encrypted objects by the name of their key. The keys are not in the backup. */
  readonly encrypted: ReadonlyMap<string, number>
}

/**
 * Writes the file `path` atomically: `copy` writes a temporary file next to it, which replaces `path` in one step once it is on disk.
 * Only its owner can read it.
 * @throws what `copy` and `check` throw; `path` is unchanged then.
 */
export async function writeAtomically<T>(
  path: string,
  copy: (temporary: string) => Promise<void>,
  check: (temporary: string) => T,
): Promise<T> {
  const temporary = `${path}.${randomBytes(6).toString('hex')}.tmp`
  closeSync(openSync(temporary, 'wx', 0o600))
  try {
    await copy(temporary)
    const checked = check(temporary)
    syncPath(temporary)
    renameSync(temporary, path)
    syncPath(dirname(path))
    return checked
  } finally {
    for (const suffix of ['', '-wal', '-shm', '-journal']) rmSync(temporary + suffix, { force: true })
  }
}

/**
 * {@link writeAtomically} for a backup, which is checked like a database at startup. It reads the whole copy: meant for processes that
 * serve nothing meanwhile, such as a command.
 * @throws {ServerStartError} DataCorrupt when the copy is corrupt.
 */
export function writeBackup(path: string, copy: (temporary: string) => Promise<void>): Promise<BackupSummary> {
  return writeAtomically(path, copy, temporary => inspectBackup(temporary, path))
}

/**
 * Reads and checks a whole copy, which errors call `path`.
 * @throws {ServerStartError} DataCorrupt when the copy is corrupt.
 */
export function inspectBackup(copy: string, path: string): BackupSummary {
  const { objects, encrypted, newestRevision, corruption } = inspect(copy)
  let count = 0
  for (const ofResource of objects.values()) count += ofResource
  if (!corruption.isEmpty) throw corruption.toError(path, count)
  return { path, bytes: statSync(copy).size, objects: count, revision: newestRevision, encrypted }
}

/**
 * Copies the database of a data directory that no server runs on. The directory is not changed, and its format is not migrated.
 * @throws {ServerStartError} DataInUse when a server runs on it, DataMissing when there is no database.
 */
export async function backUpDataDirectory(dataDir: string, path: string): Promise<BackupSummary> {
  const file = join(dataDir, 'oarlock.db')
  if (!existsSync(file))
    throw new ServerStartError('DataMissing', `${file} does not exist: pass the data directory of a server with --data`)
  return await writeBackup(path, async temporary => {
    try {
      // A server that starts meanwhile fails with DataInUse.
      await copyLockedDatabase(file, temporary)
    } catch (error) {
      throw toStartError(error, file)
    }
  })
}
