import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { DatabaseSync } from 'node:sqlite'
import { copyLockedDatabase, openLockedDatabase } from '../../kubernetes/util/index.ts'

export { stateKeyId } from './encryption.ts'

import { StateDatabase } from './state-database.ts'
import { stateFileFormat } from './state-file.ts'
import { StateStoreError, toStateStoreError } from './state-store-error.ts'

/** What a copy of a state store contains. Nothing of it is encrypted. */
export type StateFileSummary = {
  /** By UID: number of the newest accepted version; 0 without one. */
  readonly newestVersions: ReadonlyMap<string, number>
  readonly versions: number
  readonly orphans: number
  readonly plans: number
  readonly locks: number
}

/**
 * Checks the file of a state store that no process has open, without its key, and counts what it contains.
 * @throws {StateStoreError} `Corrupt`, `DataTooNew`, `InUse`.
 */
export function inspectStateFile(path: string): StateFileSummary {
  checkExists(path)
  let db: DatabaseSync | undefined
  try {
    db = openLockedDatabase(path)
    return summaryOf(db, path)
  } catch (error) {
    throw toStateStoreError(error, `reading ${path}`)
  } finally {
    db?.close()
  }
}

function summaryOf(db: DatabaseSync, path: string): StateFileSummary {
  stateFileFormat(db, path)
  const problems = (db.prepare('PRAGMA quick_check(1)').all() as { quick_check: string }[]).filter(row => row.quick_check !== 'ok')
  if (problems.length > 0) throw new StateStoreError('Corrupt', `${path} is corrupt: ${problems[0]?.quick_check}`)
  const count = (from: string) => (db.prepare(`SELECT count(*) AS count FROM ${from}`).get() as { count: number }).count
  // A store of an earlier version of Oarlock has no journals.
  const hasJournals = count("sqlite_master WHERE type = 'table' AND name = 'journal'") > 0
  const numbers = `SELECT version, stack_uid FROM version WHERE orphan IS NULL${hasJournals ? ' UNION ALL SELECT version, stack_uid FROM journal WHERE is_open = 1' : ''}`
  const newest = db
    .prepare(
      `SELECT stack_uid AS uid, coalesce((SELECT max(version) FROM (${numbers}) v WHERE v.stack_uid = stack.stack_uid), 0) AS version FROM stack`,
    )
    .all() as { uid: string; version: number }[]
  return {
    newestVersions: new Map(newest.map(({ uid, version }) => [uid, version])),
    versions: count('version WHERE orphan IS NULL'),
    orphans: count('version WHERE orphan IS NOT NULL'),
    plans: count('plan'),
    locks: count('lock'),
  }
}

/**
 * Copies the state store in `directory`, which no process has open, to `path`. Needs no key.
 * @throws {StateStoreError} `InUse`, `Corrupt`, `DataTooNew`, `DiskFull`.
 */
export async function copyStateFile(directory: string, path: string): Promise<void> {
  const file = join(directory, 'state.db')
  checkExists(file)
  try {
    await copyLockedDatabase(file, path, db => stateFileFormat(db, file))
  } catch (error) {
    throw toStateStoreError(error, `copying ${file}`)
  }
}

/**
 * Prepares the state store in `directory`, a restored copy: excludes every Run that may have started since the copy was made. Returns the last
 * excluded epoch of each Stack.
 * @throws {StateStoreError} `StateKeyMismatch` when the copy needs another key.
 */
export function restoreStateFile(directory: string, key: Uint8Array): Map<string, number> {
  const database = new StateDatabase({ directory, key })
  try {
    return database.raiseFences()
  } finally {
    database.close()
  }
}

function checkExists(path: string): void {
  if (!existsSync(path)) throw new StateStoreError('Unavailable', `${path} does not exist`)
}
