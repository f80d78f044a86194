import type { DatabaseSync } from 'node:sqlite'
import { ServerStartError } from './start-error.ts'

/**
 * One step from a format to the next. Steps run in order, all in the one transaction of the start: a start that dies half-way
 * has changed nothing. They must be cheap, or a large data directory would need minutes for an update: add columns, do not
 * rewrite rows.
 */
type Migration = { readonly to: number; readonly does: string; readonly sql: string }

const migrations: readonly Migration[] = [
  {
    to: 1,
    does: 'objects, and the newest revision of each resource',
    sql: `CREATE TABLE object (id INTEGER PRIMARY KEY, resource TEXT NOT NULL, key TEXT NOT NULL, revision INTEGER NOT NULL, value TEXT NOT NULL);
      CREATE TABLE resource (name TEXT PRIMARY KEY, revision INTEGER NOT NULL) WITHOUT ROWID`,
  },
  {
    to: 2,
    does: 'a checksum of each object (null until it is written again); the floor that a restore sets',
    sql: `ALTER TABLE object ADD COLUMN checksum INTEGER;
      CREATE TABLE meta (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID`,
  },
]

/** The layout of the database. A higher number than this was written by a newer Oarlock. */
export const formatVersion = migrations.at(-1)!.to

/** The format of an open database; 0 when it is new. */
export function readFormat(db: DatabaseSync): number {
  return (db.prepare('PRAGMA user_version').get() as { user_version: number }).user_version
}

/**
 * Brings a database to {@link formatVersion}, inside the transaction of the caller.
 * @returns the format that was found; 0 for a new database.
 * @throws {ServerStartError} DataTooNew, with nothing changed.
 */
export function migrate(db: DatabaseSync, file: string): number {
  const found = readFormat(db)
  if (found > formatVersion) {
    throw new ServerStartError(
      'DataTooNew',
      `${file} has data format ${found}, this version of oarlock reads up to ${formatVersion}: run the newer version again, or choose another data directory`,
    )
  }
  for (const { to, sql } of migrations) if (to > found) db.exec(`${sql}; PRAGMA user_version=${to}`)
  return found
}
