import { DatabaseSync } from 'node:sqlite'
import { CorruptionReport } from './corruption-report.ts'
import { toStartError } from './database.ts'
import { formatVersion, readFormat } from './format.ts'
import { sqliteCode, sqliteCorrupt } from './sqlite-codes.ts'
import { ServerStartError } from './start-error.ts'
import { validRows } from './valid-rows.ts'

/** The content of a database file, and its corruption. */
export type Inspection = {
  readonly format: number
  /** Number of intact objects by resource. */
  readonly objects: ReadonlyMap<string, number>
  readonly newestRevision: number
  readonly corruption: CorruptionReport
}

/**
 * Reads and checks a whole database file that no server has open, as a server does at startup. Changes nothing in it.
 * @throws {ServerStartError} when it is in use, is not an Oarlock database, or has a newer format.
 */
export function inspect(file: string): Inspection {
  let db: DatabaseSync | undefined
  try {
    db = new DatabaseSync(file, { timeout: 250 })
    return inspectOpen(db, file)
  } catch (error) {
    throw toStartError(error, file)
  } finally {
    db?.close()
  }
}

function inspectOpen(db: DatabaseSync, file: string): Inspection {
  const format = readFormat(db)
  if (format > formatVersion) {
    throw new ServerStartError(
      'DataTooNew',
      `${file} has data format ${format}, this version of oarlock reads up to ${formatVersion}: use the newer version of oarlock`,
    )
  }
  if (format < 1) throw new ServerStartError('DataCorrupt', `${file} is not an oarlock backup: pass a file that "oarlock backup" created`)
  const corruption = new CorruptionReport()
  const objects = new Map<string, number>()
  let newestRevision = newestKnown(db, format)
  for (const { row } of validRows(db, format, found => corruption.add(found))) {
    const [, resource, , revision] = row
    objects.set(resource, (objects.get(resource) ?? 0) + 1)
    newestRevision = Math.max(newestRevision, revision)
  }
  return { format, objects, newestRevision, corruption }
}

function newestKnown(db: DatabaseSync, format: number): number {
  // Both the floor of a restore and reservations are revisions that clients may know.
  const floor = format >= 2 ? 'SELECT value FROM meta UNION' : ''
  const sql = `SELECT max(value) AS newest FROM (${floor} SELECT max(revision) AS value FROM resource)`
  try {
    return (db.prepare(sql).get() as { newest: number | null }).newest ?? 0
  } catch (error) {
    if (sqliteCode(error) === sqliteCorrupt) return 0
    throw error
  }
}
