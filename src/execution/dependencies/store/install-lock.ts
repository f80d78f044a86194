import { closeSync, openSync, rmdirSync, rmSync, statSync, utimesSync } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { DatabaseSync as Database } from 'node:sqlite'
import { ifMissing, makeDirectories, sha256 } from '../../../kubernetes/util/index.ts'
import type { Release } from '../../workspace/index.ts'

/** SQLITE_BUSY: another process, or another connection of this one, holds the lock. */
const sqliteBusy = 5
const sqliteCannotOpen = 14

/**
 * Locks the install of a digest in a trust domain, or returns undefined while another process holds the lock. The kernel releases it when its holder
 * ends, however it ends, so there is no stale lock and nothing to take away from a process that only seems to have ended: it is SQLite's
 * exclusive lock on an empty database (fcntl(2)), which also works between containers of one machine. The digests of a domain share 256
 * files in a directory of the domain: a Run, which can choose its digest, delays only Runs of its own domain. {@link removeOldLocks} removes them
 * after the last use; a process that begins to use one of them in that instant may install what another one installs, too.
 */
export function tryInstallLock(directory: string, domain: string, digest: string): Release | undefined {
  const locks = join(directory, domain)
  makeDirectories(locks, 0o700)
  const path = join(locks, sha256(digest).slice(0, 2))
  // Loaded when a Run installs something; most find their tree.
  const { DatabaseSync } = process.getBuiltinModule('node:sqlite')
  let database: Database | undefined
  try {
    database = new DatabaseSync(path, { timeout: 0 })
    database.exec('PRAGMA journal_mode = OFF')
    database.exec('BEGIN EXCLUSIVE')
  } catch (error) {
    database?.close()
    const { errcode } = error as { errcode?: number }
    if (errcode === sqliteBusy) return undefined
    // SQLite does not report why. Not by opening the file: to close it would release a lock that this process has on it.
    if (errcode === sqliteCannotOpen) closeSync(openSync(locks, 'r'))
    throw error
  }
  const held = database
  const now = new Date()
  utimesSync(path, now, now)
  let isHeld = true
  return async () => {
    if (isHeld) held.close()
    isHeld = false
  }
}

/** Removes the files of locks that were last held `maxAgeMs` ago, of all domains (invariant 10): longer than any Run holds one. */
export async function removeOldLocks(directory: string, maxAgeMs: number): Promise<void> {
  for (const domain of await readdir(directory).catch(ifMissing([]))) {
    const locks = join(directory, domain)
    const names = await readdir(locks).catch(() => [])
    for (const name of names) {
      const stats = statSync(join(locks, name), { throwIfNoEntry: false })
      if (stats && Date.now() - stats.mtimeMs > maxAgeMs) rmSync(join(locks, name), { force: true })
    }
    try {
      rmdirSync(locks)
    } catch {
      // It has other locks.
    }
  }
}
