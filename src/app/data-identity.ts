import { randomBytes } from 'node:crypto'
import { closeSync, openSync } from 'node:fs'
import { dirname } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { makeDirectories } from '../kubernetes/util/index.ts'
import { AppStartError, DataInUseError } from './app-start-error.ts'

export type DataIdentity = {
  readonly id: string
  /** The open file, for what else belongs to the identity. */
  readonly database: DatabaseSync
  release(): void
}

export type DataIdentityOptions = {
  /** Holds the id and the lock. */
  file: string
  /** The directory that the messages name. */
  dataDir: string
  /** The commands that lock this directory, for messages. */
  usedBy: string
  /** Length of a new id in bytes; it is written in hexadecimal. */
  idBytes: number
  /** The id of a new directory. Default: a random one. */
  newId?: string | undefined
  /** Replaces a stored id, because the data that it identified does not exist any more. Default false. */
  isNew?: boolean
}

/** SQLite's primary result codes. */
const busy = 5
const full = 13

/**
 * Locks a data directory for the life of this process and returns its random id, which is the same after a restart. The lock on the file
 * belongs to the operating system: it ends with the process, also after SIGKILL.
 * @throws {AppStartError} if another process uses the directory, or it cannot be written.
 */
export function openDataIdentity({ file, dataDir, usedBy, idBytes, newId, isNew = false }: DataIdentityOptions): DataIdentity {
  let db: DatabaseSync | undefined
  try {
    makeDirectories(dirname(file), 0o700)
    // SQLite would create it readable for everyone.
    closeSync(openSync(file, 'a', 0o600))
    db = new DatabaseSync(file, { timeout: 250 })
    // EXTRA: a power failure does not undo a committed write.
    db.exec(
      'PRAGMA synchronous=EXTRA; PRAGMA locking_mode=EXCLUSIVE; BEGIN EXCLUSIVE; CREATE TABLE IF NOT EXISTS identity (id TEXT NOT NULL)',
    )
    if (isNew) db.exec('DELETE FROM identity')
    const stored = db.prepare('SELECT id FROM identity').get() as { id: string } | undefined
    const id = stored?.id ?? newId ?? randomBytes(idBytes).toString('hex')
    if (!stored) db.prepare('INSERT INTO identity (id) VALUES (?)').run(id)
    // With locking_mode=EXCLUSIVE the lock remains until the file is closed.
    db.exec('COMMIT')
    const opened = db
    return { id, database: opened, release: () => opened.close() }
  } catch (error) {
    db?.close()
    const { errcode = 0, message } = error as Error & { errcode?: number }
    const code = errcode & 0xff
    if (code === busy) {
      const hint = 'stop the other process, or choose another directory with --data'
      throw new DataInUseError(`${dataDir} is in use by another ${usedBy}`, hint, error)
    }
    const hint = code === full ? 'free some space and start again' : 'check its owner and mode, or choose another directory with --data'
    throw new AppStartError('DataDirectory', `failed to write ${file}: ${message}`, hint, error)
  }
}
