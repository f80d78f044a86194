import { CorruptionReport } from './corruption-report.ts'
import { toStartError } from './database.ts'
import { formatVersion, readFormat } from './format.ts'
import type { RowEncryption } from './row-encryption.ts'
import { DatabaseSync } from './sqlite.ts'
import { sqliteCode, sqliteCorrupt } from './sqlite-codes.ts'
import { ServerStartError } from './start-error.ts'
import { type InvalidRowHandlers, validRows } from './valid-rows.ts'

/** The content of a database file, and its corruption. */
export type Inspection = {
  readonly format: number
  /** Number of intact objects by resource, {@link locked} ones included. */
  readonly objects: ReadonlyMap<string, number>
  /** Number of encrypted objects by the name of their key. */
  readonly encrypted: ReadonlyMap<string, number>
  /** Number of encrypted objects by the name of their key, of those whose key is not known: only their checksum was verified. */
  readonly locked: ReadonlyMap<string, number>
  readonly newestRevision: number
  readonly corruption: CorruptionReport
  /** What cannot be read, each with its reason: every {@link corruption} and locked object. */
  readonly unreadable: readonly string[]
}

/**
 * Reads and checks a whole database file that no server has open, as a server does at startup. Changes nothing in it.
 * Encrypted objects need not be readable: without `encryption` they are all locked.
 * @throws {ServerStartError} when it is in use, is not an Oarlock database, or has a newer format.
 */
export function inspect(file: string, encryption?: RowEncryption): Inspection {
  let db: DatabaseSync | undefined
  try {
    db = new DatabaseSync(file, { timeout: 250 })
    return inspectOpen(db, file, encryption)
  } catch (error) {
    throw toStartError(error, file)
  } finally {
    db?.close()
  }
}

function inspectOpen(db: DatabaseSync, file: string, encryption: RowEncryption | undefined): Inspection {
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
  const encrypted = new Map<string, number>()
  const locked = new Map<string, number>()
  const unreadable: string[] = []
  let newestRevision = newestKnown(db, format)
  const add = (resource: string, revision: number, keyName: string | undefined) => {
    increment(objects, resource)
    if (keyName !== undefined) increment(encrypted, keyName)
    newestRevision = Math.max(newestRevision, revision)
  }
  const handlers: InvalidRowHandlers = {
    onCorruption: found => {
      corruption.add(found)
      unreadable.push(found.what)
    },
    onLocked: ({ resource, key, revision, keyName }) => {
      unreadable.push(`${resource} ${key} is encrypted with the missing key ${keyName}`)
      add(resource, revision, keyName)
      increment(locked, keyName)
    },
  }
  for (const { row, keyName } of validRows(db, format, encryption, handlers)) add(row[1], row[3], keyName)
  return { format, objects, encrypted, locked, newestRevision, corruption, unreadable }
}

const increment = (counts: Map<string, number>, name: string) => counts.set(name, (counts.get(name) ?? 0) + 1)

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
