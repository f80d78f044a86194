import type { DatabaseSync } from 'node:sqlite'

/** A process that closes the file, such as an idle thread of a store, has this long. */
const lockTimeoutMs = 250

/** Opens a database that no other process has open, and locks it until it is closed: a process that opens it meanwhile fails. */
export function openLockedDatabase(path: string): DatabaseSync {
  // Not imported: an older Node would report a missing module before its version is checked.
  const { DatabaseSync: Database } = process.getBuiltinModule('node:sqlite')
  const db = new Database(path, { timeout: lockTimeoutMs })
  try {
    db.exec('PRAGMA locking_mode=EXCLUSIVE; BEGIN IMMEDIATE; COMMIT')
    return db
  } catch (error) {
    db.close()
    throw error
  }
}

/** Copies a database that no other process has open to `to`. `check` may reject it. */
export async function copyLockedDatabase(path: string, to: string, check: (db: DatabaseSync) => void = () => {}): Promise<void> {
  const db = openLockedDatabase(path)
  try {
    check(db)
    await process.getBuiltinModule('node:sqlite').backup(db, to)
  } finally {
    db.close()
  }
}
