import { closeSync, existsSync, openSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync, type StatementSync } from 'node:sqlite'
import { backUpDatabase } from '../../kubernetes/util/back-up-database.ts'
import { makeDirectories } from '../../kubernetes/util/index.ts'
import type { Encryption } from './encryption.ts'
import { StateStoreError, toStateStoreError } from './state-store-error.ts'
import type { StateLimits } from './state-types.ts'

const format = 1
/** "OarS": identifies the file in its header. */
const applicationId = 0x4f617253
const keyProbe = 'oarlock state store'

/**
 * The format of a state store; 0 for an empty file.
 * @throws {StateStoreError} `DataTooNew`, or `Corrupt` for another file.
 */
export function stateFileFormat(db: DatabaseSync, path: string): number {
  const { user_version: version } = db.prepare('PRAGMA user_version').get() as { user_version: number }
  const { application_id: owner } = db.prepare('PRAGMA application_id').get() as { application_id: number }
  if (version > format) {
    throw new StateStoreError(
      'DataTooNew',
      `${path} has format ${version}, this version of Oarlock supports up to ${format}; upgrade Oarlock`,
    )
  }
  if (version !== 0 && owner !== applicationId) throw new StateStoreError('Corrupt', `${path} is not a state store of Oarlock`)
  return version
}

/**
 * The SQLite file of a state store: schema, settings, transactions and prepared statements.
 * `synchronous=FULL` makes a commit return only when it is on disk (invariant 5).
 * @throws {StateStoreError} on opening: `StateKeyMismatch`, `DataTooNew`, `InUse`, `Corrupt`, `DiskFull`, `Unavailable`.
 */
export class StateFile {
  readonly #db: DatabaseSync
  readonly #limits: StateLimits
  readonly #statements = new Map<string, StatementSync>()

  constructor(directory: string, encryption: Encryption, limits: StateLimits) {
    this.#limits = limits
    const path = join(directory, 'state.db')
    let db: DatabaseSync | undefined
    try {
      makeDirectories(directory, 0o700)
      // Created here with mode 0600 from its first byte; SQLite gives its journal the same mode.
      if (!existsSync(path)) closeSync(openSync(path, 'a', 0o600))
      db = new DatabaseSync(path, { timeout: 0 })
      this.#db = db
      this.#open(path, encryption)
    } catch (error) {
      try {
        db?.close()
      } catch {
        // The first error is the one to report.
      }
      throw toStateStoreError(error, `opening ${path}`)
    }
  }

  /** A prepared statement, cached by its text. */
  sql(text: string): StatementSync {
    let statement = this.#statements.get(text)
    if (statement === undefined) {
      statement = this.#db.prepare(text)
      this.#statements.set(text, statement)
    }
    return statement
  }

  /**
   * Runs `work` as one transaction: all of it is on disk when this returns, or nothing of it happened.
   * @throws what `work` threw, or a {@link StateStoreError}.
   */
  transaction<T>(work: () => T): T {
    try {
      this.#db.exec('BEGIN')
      const result = work()
      this.#db.exec('COMMIT')
      return result
    } catch (error) {
      // On a full disk SQLite has rolled back already.
      if (this.#db.isTransaction) this.#db.exec('ROLLBACK')
      const typed = toStateStoreError(error, 'writing')
      if (typed.code === 'DiskFull' && this.#isQuotaExceeded()) {
        const message = `the state store has reached its limit of ${this.#limits.totalBytes} bytes; delete stacks or raise the limit`
        throw new StateStoreError('QuotaExceeded', message, { cause: error })
      }
      throw typed
    }
  }

  /** Copies the database to `path` while writes continue; the copy has every commit that was acknowledged before this call. */
  async backUp(path: string): Promise<void> {
    try {
      await backUpDatabase(this.#db, path)
    } catch (error) {
      throw toStateStoreError(error, `copying the state store to ${path}`)
    }
  }

  /** Size in bytes, including free pages. */
  get bytes(): number {
    const { page_size: pageSize } = this.sql('PRAGMA page_size').get() as { page_size: number }
    const { page_count: pages } = this.sql('PRAGMA page_count').get() as { page_count: number }
    return pageSize * pages
  }

  close(): void {
    this.#db.close()
  }

  #open(path: string, encryption: Encryption): void {
    const version = stateFileFormat(this.#db, path)
    // Exclusive before WAL: a second process fails immediately, and no shared-memory file is needed.
    this.#db.exec('PRAGMA locking_mode = EXCLUSIVE')
    this.#db.exec('PRAGMA journal_mode = WAL')
    this.#db.exec('PRAGMA synchronous = FULL')
    this.#db.exec('PRAGMA journal_size_limit = 67108864')
    const { page_size: pageSize } = this.#db.prepare('PRAGMA page_size').get() as { page_size: number }
    this.#db.exec(`PRAGMA max_page_count = ${Math.max(16, Math.floor(this.#limits.totalBytes / pageSize))}`)
    if (version === 0) this.#create(encryption)
    // Not part of format 1 at first. Versions of Oarlock that do not know it ignore it.
    this.#db.exec(`CREATE TABLE IF NOT EXISTS diff (
      stack_uid TEXT NOT NULL, run_name TEXT NOT NULL, size INTEGER NOT NULL, created_ms INTEGER NOT NULL, sealed BLOB NOT NULL,
      PRIMARY KEY (stack_uid, run_name)) STRICT`)
    this.#db.exec(`CREATE TABLE IF NOT EXISTS configuration (
      stack_uid TEXT PRIMARY KEY, epoch INTEGER NOT NULL, digest TEXT NOT NULL, size INTEGER NOT NULL, created_ms INTEGER NOT NULL, sealed BLOB NOT NULL) STRICT`)
    this.#db.exec(`CREATE TABLE IF NOT EXISTS journal (
      stack_uid TEXT PRIMARY KEY, epoch INTEGER NOT NULL, run_name TEXT NOT NULL, update_number INTEGER NOT NULL, is_open INTEGER NOT NULL,
      version INTEGER NOT NULL, base_version INTEGER NOT NULL, cli_version TEXT NOT NULL, entries INTEGER NOT NULL, bytes INTEGER NOT NULL,
      changed_ms INTEGER NOT NULL) STRICT`)
    this.#db.exec(`CREATE TABLE IF NOT EXISTS journal_digest (
      stack_uid TEXT NOT NULL, sequence_id INTEGER NOT NULL, digest TEXT NOT NULL, PRIMARY KEY (stack_uid, sequence_id)) STRICT, WITHOUT ROWID`)
    this.#db.exec(`CREATE TABLE IF NOT EXISTS journal_batch (
      stack_uid TEXT NOT NULL, number INTEGER NOT NULL, size INTEGER NOT NULL, sealed BLOB NOT NULL, PRIMARY KEY (stack_uid, number)) STRICT`)
    // The version that the last checkpoint of an update of Pulumi is.
    this.#db.exec(`CREATE TABLE IF NOT EXISTS checkpoint (
      stack_uid TEXT PRIMARY KEY, epoch INTEGER NOT NULL, run_name TEXT NOT NULL, update_number INTEGER NOT NULL, version INTEGER NOT NULL) STRICT`)
    const row = this.sql('SELECT value FROM meta WHERE key = ?').get('keyProbe') as { value: Uint8Array } | undefined
    try {
      if (row === undefined) throw new Error('the key probe is missing')
      encryption.decrypt(row.value, ['', 'keyProbe'], keyProbe.length)
    } catch (cause) {
      const message = `the key cannot decrypt ${path}, which was written with another key; restore that key`
      throw new StateStoreError('StateKeyMismatch', message, { cause })
    }
  }

  /** Columns named `sealed` hold encrypted content (see `Encryption`). */
  #create(encryption: Encryption): void {
    this.#db.exec(`BEGIN IMMEDIATE;
      CREATE TABLE meta (key TEXT PRIMARY KEY, value BLOB NOT NULL) STRICT;
      CREATE TABLE stack (
        stack_uid TEXT PRIMARY KEY, min_epoch INTEGER NOT NULL, max_seen_epoch INTEGER NOT NULL, next_version INTEGER NOT NULL,
        dropped_versions INTEGER NOT NULL DEFAULT 0, dropped_orphans INTEGER NOT NULL DEFAULT 0) STRICT;
      CREATE TABLE version (
        stack_uid TEXT NOT NULL, version INTEGER NOT NULL, kind TEXT NOT NULL, orphan TEXT, epoch INTEGER NOT NULL, author TEXT NOT NULL,
        sequence INTEGER, digest TEXT NOT NULL, size INTEGER NOT NULL, stored INTEGER NOT NULL, created_ms INTEGER NOT NULL, sealed BLOB NOT NULL,
        PRIMARY KEY (stack_uid, version)) STRICT;
      CREATE TABLE plan (
        stack_uid TEXT NOT NULL, digest TEXT NOT NULL, run_name TEXT NOT NULL, size INTEGER NOT NULL, created_ms INTEGER NOT NULL, sealed BLOB NOT NULL,
        PRIMARY KEY (stack_uid, digest)) STRICT;
      CREATE TABLE lock (stack_uid TEXT PRIMARY KEY, holder TEXT NOT NULL, since_ms INTEGER NOT NULL) STRICT;
      PRAGMA application_id = ${applicationId};
      PRAGMA user_version = ${format}`)
    const probe = encryption.encrypt(Buffer.from(keyProbe), ['', 'keyProbe'])
    this.sql('INSERT INTO meta VALUES (?, ?)').run('keyProbe', probe)
    this.#db.exec('COMMIT')
  }

  /** Within one large write of the limit: SQLite does not report whether the disk or `max_page_count` was full. */
  #isQuotaExceeded(): boolean {
    return this.bytes + this.#limits.maxBytes >= this.#limits.totalBytes
  }
}
