import { closeSync, openSync } from 'node:fs'
import { join } from 'node:path'
import type { DatabaseSync as Database } from 'node:sqlite'
import { makeDirectories, sha256 } from '../../../kubernetes/util/index.ts'
import type { Release } from '../../workspace/index.ts'

/** SQLITE_BUSY: another process, or another connection of this one, holds the lock. */
const sqliteBusy = 5
const sqliteCannotOpen = 14

/**
 * Takes the lock with this name, or returns undefined while another process holds it. The kernel releases it when its holder ends, however it
 * ends, so there is no stale lock and nothing to take away from a process that only seems to have ended: it is SQLite's exclusive lock on
 * an empty database (fcntl(2)), which also works between containers of one machine. Names share 4,096 files, which are never removed: two
 * processes with one lock would otherwise each have a file of their own.
 */
export function tryInstallLock(directory: string, name: string): Release | undefined {
  makeDirectories(directory, 0o700)
  // Loaded when a Run installs something; most find their tree.
  const { DatabaseSync } = process.getBuiltinModule('node:sqlite')
  let database: Database | undefined
  try {
    database = new DatabaseSync(join(directory, sha256(name).slice(0, 3)), { timeout: 0 })
    database.exec('PRAGMA journal_mode = OFF')
    database.exec('BEGIN EXCLUSIVE')
  } catch (error) {
    database?.close()
    const { errcode } = error as { errcode?: number }
    if (errcode === sqliteBusy) return undefined
    // SQLite does not report why. Not by opening the file: to close it would release a lock that this process has on it.
    if (errcode === sqliteCannotOpen) closeSync(openSync(directory, 'r'))
    throw error
  }
  const held = database
  let isHeld = true
  return async () => {
    if (isHeld) held.close()
    isHeld = false
  }
}
