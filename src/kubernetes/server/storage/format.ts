import type { DatabaseSync } from 'node:sqlite'
import { ServerStartError } from './start-error.ts'

/**
 * One step from a format to the next. Steps run in order in one transaction at startup, so a start that fails half-way has changed
 * nothing. They must be cheap, or an upgrade of a large data directory would take minutes: add columns, do not rewrite rows.
 */
type Migration = { readonly to: number; readonly description: string; readonly sql: string }

const migrations: readonly Migration[] = [
  {
    to: 1,
    description: 'objects, and the newest revision of each resource',
    sql: `CREATE TABLE object (id INTEGER PRIMARY KEY, resource TEXT NOT NULL, key TEXT NOT NULL, revision INTEGER NOT NULL, value TEXT NOT NULL);
      CREATE TABLE resource (name TEXT PRIMARY KEY, revision INTEGER NOT NULL) WITHOUT ROWID`,
  },
  {
    to: 2,
    description: 'a checksum of each object (null until its next write); the history floor that a restore sets',
    sql: `ALTER TABLE object ADD COLUMN checksum INTEGER;
      CREATE TABLE meta (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID`,
  },
  {
    to: 3,
    description: 'a value may be encrypted, and is a BLOB then; the rows of older formats are encrypted after the migration',
    sql: '',
  },
  {
    to: 4,
    description:
      'as format 3. Versions that know format 3 only replace newer CustomResourceDefinitions with their own, which drops fields; they must not open it',
    sql: '',
  },
]

/** The newest format this version reads and writes. A database with a higher number comes from a newer Oarlock. */
export const formatVersion = migrations.at(-1)!.to

/** The format of an open database; 0 for a new one. */
export function readFormat(db: DatabaseSync): number {
  return (db.prepare('PRAGMA user_version').get() as { user_version: number }).user_version
}

/**
 * Migrates a database to {@link formatVersion}, inside the caller's transaction.
 * @returns the format found on disk; 0 for a new database.
 * @throws {ServerStartError} DataTooNew; nothing was changed then.
 */
export function migrate(db: DatabaseSync, file: string): number {
  const found = readFormat(db)
  if (found > formatVersion) {
    throw new ServerStartError(
      'DataTooNew',
      `${file} has data format ${found}, this version of oarlock reads up to ${formatVersion}: run the newer version again, or choose another data directory`,
    )
  }
  for (const { to, sql } of migrations) if (to > found) db.exec(`PRAGMA user_version=${to}; ${sql}`)
  return found
}
