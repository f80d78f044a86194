import { chmodSync, closeSync, existsSync, openSync } from 'node:fs'
import { DatabaseSync, type StatementSync } from 'node:sqlite'
import type { CommitBatch, Row, WorkerOptions } from './protocol.ts'
import { ServerStartError } from './start-error.ts'

/** The layout of the database. A higher number than this was written by a newer Oarlock. */
export const formatVersion = 1

const sqliteBusy = 5
const sqliteReadOnly = 8
const sqliteIoError = 10
const sqliteCorrupt = 11
export const sqliteFull = 13
const sqliteCantOpen = 14
const sqliteNotADatabase = 26

/** SQLite's primary result code of an error, 0 when it is not SQLite's. */
export function sqliteCode(error: unknown): number {
  const errcode = (error as { errcode?: unknown } | undefined)?.errcode
  return typeof errcode === 'number' ? errcode & 0xff : 0
}

/**
 * Secrets lie in here as they are, and the directory may be one that others can read (invariant 9). SQLite gives the files beside it
 * the same mode. What goes wrong here goes wrong again when SQLite opens it, and SQLite says it better.
 */
function makePrivate(file: string): void {
  try {
    closeSync(openSync(file, 'a', 0o600))
    for (const path of [file, `${file}-wal`, `${file}-shm`]) if (existsSync(path)) chmodSync(path, 0o600)
  } catch {}
}

/**
 * The file under the store. Objects are rows with an integer key and nothing else to look up by: every lookup is
 * in memory, so a new object is appended and a changed one touches one page.
 * The exclusive lock is the operating system's: it dies with the process, even by SIGKILL.
 */
export class Database {
  readonly #db: DatabaseSync
  readonly #insert: StatementSync
  readonly #update: StatementSync
  readonly #delete: StatementSync
  readonly #setRevision: StatementSync
  readonly #begin: StatementSync
  readonly #commit: StatementSync

  /** @throws {ServerStartError} when the file is in use, newer, damaged, or its directory cannot be written. */
  constructor({ file, synchronous }: Pick<WorkerOptions, 'file' | 'synchronous'>) {
    try {
      makePrivate(file)
      this.#db = new DatabaseSync(file, { timeout: 250 })
      this.#db.exec(`PRAGMA locking_mode=EXCLUSIVE; PRAGMA journal_mode=WAL; PRAGMA synchronous=${synchronous === 'OFF' ? 'OFF' : 'FULL'};
        PRAGMA wal_autocheckpoint=4000; PRAGMA journal_size_limit=67108864; PRAGMA cache_size=-2048; BEGIN IMMEDIATE`)
      this.#prepareFormat(file)
      this.#db.exec('COMMIT')
      this.#insert = this.#db.prepare('INSERT INTO object (id, resource, key, revision, value) VALUES (?, ?, ?, ?, ?)')
      this.#update = this.#db.prepare('UPDATE object SET revision = ?, value = ? WHERE id = ?')
      this.#delete = this.#db.prepare('DELETE FROM object WHERE id = ?')
      this.#setRevision = this.#db.prepare(
        'INSERT INTO resource (name, revision) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET revision = excluded.revision',
      )
      this.#begin = this.#db.prepare('BEGIN IMMEDIATE')
      this.#commit = this.#db.prepare('COMMIT')
    } catch (error) {
      throw startError(error, file)
    }
  }

  #prepareFormat(file: string): void {
    const { user_version: found } = this.#db.prepare('PRAGMA user_version').get() as { user_version: number }
    if (found > formatVersion) {
      throw new ServerStartError(
        'DataTooNew',
        `${file} has data format ${found}, this version of oarlock reads up to ${formatVersion}: run the newer version again, or choose another data directory`,
      )
    }
    if (found === 0) {
      this.#db.exec(`
        CREATE TABLE object (id INTEGER PRIMARY KEY, resource TEXT NOT NULL, key TEXT NOT NULL, revision INTEGER NOT NULL, value TEXT NOT NULL);
        CREATE TABLE resource (name TEXT PRIMARY KEY, revision INTEGER NOT NULL) WITHOUT ROWID;
        PRAGMA user_version=${formatVersion}`)
    }
  }

  *rows(): Generator<Row> {
    const statement = this.#db.prepare('SELECT id, resource, revision, value FROM object')
    statement.setReturnArrays(true)
    for (const row of statement.iterate()) yield row as unknown as Row
  }

  /** The newest revision of each resource, deletions included. */
  revisions(): [string, number][] {
    const rows = this.#db.prepare('SELECT name, revision FROM resource').all() as { name: string; revision: number }[]
    return rows.map(row => [row.name, row.revision])
  }

  /** All or nothing, and on disk when it returns (invariant 5). Throws SQLite's error after rolling back. */
  write({ resources, numbers, keys, texts }: Omit<CommitBatch, 'type'>): void {
    const newest = new Array<number>(resources.length)
    this.#begin.run()
    try {
      for (let i = 0; i < texts.length; i++) {
        const id = numbers[3 * i]!
        const revision = numbers[3 * i + 1]!
        const resource = numbers[3 * i + 2]!
        const text = texts[i]!
        const key = keys[i]!
        if (text === '') this.#delete.run(id)
        else if (key === '') this.#update.run(revision, text, id)
        else this.#insert.run(id, resources[resource]!, key, revision, text)
        newest[resource] = revision
      }
      for (const [index, name] of resources.entries()) this.#setRevision.run(name, newest[index]!)
      this.#commit.run()
    } catch (error) {
      // SQLite rolls some failures back by itself, and then there is no transaction to end.
      if (this.#db.isTransaction) this.#db.exec('ROLLBACK')
      throw error
    }
  }

  close(): void {
    this.#db.close()
  }
}

/** Says SQLite's errors at start-up the way {@link ServerStartError} does; returns others as they are. */
export function startError(error: unknown, file: string): unknown {
  const message = error instanceof Error ? error.message : String(error)
  const because = (code: ConstructorParameters<typeof ServerStartError>[0], text: string) =>
    new ServerStartError(code, text, { cause: error })
  switch (sqliteCode(error)) {
    case sqliteBusy:
      return because('DataInUse', `${file} is in use by another oarlock process: stop it first, or choose another data directory`)
    case sqliteFull:
      return because('DiskFull', `the disk of ${file} is full: free some space and start again, nothing was damaged`)
    case sqliteReadOnly:
    case sqliteCantOpen:
      return because(
        'DataDirectoryUnwritable',
        `${file} cannot be opened for writing (${message}): check the owner and mode of its directory`,
      )
    case sqliteCorrupt:
    case sqliteNotADatabase:
      return because('DataCorrupt', `${file} is damaged (${message}): restore a backup, or move the data directory aside and start empty`)
    case sqliteIoError:
      return because('DataDirectoryUnwritable', `${file} cannot be read or written (${message}): check the disk`)
    default:
      return error
  }
}
