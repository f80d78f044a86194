import { randomBytes } from 'node:crypto'
import { closeSync, existsSync, fsyncSync, openSync, renameSync, rmSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { backup, DatabaseSync } from 'node:sqlite'
import { toStartError } from './database.ts'
import { inspect } from './inspect.ts'
import { ServerStartError } from './start-error.ts'

/** What a finished backup holds. */
export type BackupSummary = {
  readonly path: string
  readonly bytes: number
  readonly objects: number
  /** The newest resource version in it: every write up to this one is there. */
  readonly revision: number
}

/**
 * Makes the file `path` from what `copy` writes into a new file beside it: on disk, and readable for its owner only. All of it
 * is there or nothing; an older file at `path` is replaced.
 * @throws what `copy` and `check` throw.
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
 * {@link writeAtomically} for a backup, which is checked as a start checks a database. Reads all of it: for processes that have the
 * time, such as a command.
 * @throws {ServerStartError} DataCorrupt when the copy is damaged.
 */
export function writeBackup(path: string, copy: (temporary: string) => Promise<void>): Promise<BackupSummary> {
  return writeAtomically(path, copy, temporary => {
    const { objects, newestRevision, corruption } = inspect(temporary)
    let count = 0
    for (const ofResource of objects.values()) count += ofResource
    if (!corruption.isEmpty) throw corruption.toError(path, count)
    return { path, bytes: statSync(temporary).size, objects: count, revision: newestRevision }
  })
}

/**
 * Copies the database of a data directory that no server runs on. The directory stays as it is, its format too.
 * @throws {ServerStartError} DataInUse when a server runs on it, DataMissing when there is no database.
 */
export async function backUpDataDirectory(dataDir: string, path: string): Promise<BackupSummary> {
  const file = join(dataDir, 'oarlock.db')
  if (!existsSync(file)) throw new ServerStartError('DataMissing', `there is no ${file}: name the data directory of a server with --data`)
  return await writeBackup(path, async temporary => {
    let db: DatabaseSync | undefined
    try {
      db = new DatabaseSync(file, { timeout: 250 })
      // Held until the end: a server that starts meanwhile is told that the directory is in use.
      db.exec('PRAGMA locking_mode=EXCLUSIVE; BEGIN IMMEDIATE; COMMIT')
      await backup(db, temporary)
    } catch (error) {
      throw toStartError(error, file)
    } finally {
      db?.close()
    }
  })
}

/** Makes what was written to a file, or the names in a directory, survive a loss of power. */
export function syncPath(path: string): void {
  const handle = openSync(path, 'r')
  try {
    fsyncSync(handle)
  } finally {
    closeSync(handle)
  }
}
