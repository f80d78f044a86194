import { chmodSync, closeSync, existsSync, openSync, statfsSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import type { StatementSync } from 'node:sqlite'
import { backUpDatabase } from '../../util/back-up-database.ts'
import { checksumSeed, rowChecksum } from './checksum.ts'
import { recoveryAdvice } from './corruption-report.ts'
import { formatVersion, migrate } from './format.ts'
import type { CommitBatch, StorageThreadOptions } from './protocol.ts'
import { type ReadRow, readRows } from './read-rows.ts'
import { keyNameOf, maxHeaderBytes, type RowEncryption } from './row-encryption.ts'
import { DatabaseSync } from './sqlite.ts'
import {
  sqliteBusy,
  sqliteCantOpen,
  sqliteCode,
  sqliteCorrupt,
  sqliteFull,
  sqliteIoError,
  sqliteNotADatabase,
  sqliteReadOnly,
} from './sqlite-codes.ts'
import { ServerStartError } from './start-error.ts'

/**
 * Objects may be confidential although only Secrets are encrypted, and other users may be able to read the directory (invariant 9). SQLite creates the `-wal` and
 * `-shm` files with the same mode. Errors are ignored, because SQLite fails on them again with a better message, except for a read-only
 * disk.
 */
function restrictPermissions(file: string): void {
  try {
    closeSync(openSync(file, 'a', 0o600))
    for (const path of [file, `${file}-wal`, `${file}-shm`]) if (existsSync(path)) chmodSync(path, 0o600)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EROFS') return
    throw new ServerStartError('DataDirectoryUnwritable', `${file} is on a read-only file system: remount it read-write`, {
      cause: error,
    })
  }
}

/** At startup, the file is compacted when at least this much of it is free. */
const minCompactionBytes = 64 * 1024 * 1024

/** Prefix of the rows of `meta` that hold the reserved revision of a resource, see `deferred-writes.ts`. */
const reservedPrefix = 'reserved '

/** In `meta` while old forms of re-encrypted rows may be in free pages or in the log. */
const unclean = 'reencrypting'
/** One step of a re-encryption: a commit waits for the current step. */
const reencryptedRowsPerStep = 250

/** A commit that brings the log to this length also runs a checkpoint, and every write waits for it. */
const checkpointPages = 2_000
const cacheKib = 2_048
const preallocationCacheKib = 256
/** The log is not preallocated on a disk with less free space than this. */
const minFreeDiskBytes = 256 * 1024 * 1024

/**
 * The SQLite file of the store. Objects are rows with an integer key and no other index: lookups happen in memory, so a new object is
 * appended and a changed one touches one page.
 * The exclusive lock belongs to the operating system, which releases it when the process ends, also after SIGKILL.
 */
export class Database {
  readonly #db: DatabaseSync
  readonly #file: string
  readonly #insert: StatementSync
  readonly #update: StatementSync
  readonly #delete: StatementSync
  readonly #setRevision: StatementSync
  readonly #setMeta: StatementSync
  readonly #deleteMeta: StatementSync
  readonly #selectKey: StatementSync
  readonly #begin: StatementSync
  readonly #commit: StatementSync
  readonly #seeds = new Map<string, number>()
  #encryption: RowEncryption | undefined
  /** The inodes of the file and its log after the first write: other files at these paths are not the ones SQLite writes. */
  #fileIds: string | undefined
  /** The format found on disk; 0 for a new database. */
  readonly foundFormat: number

  /** @throws {ServerStartError} when the file is in use, newer, corrupt, or its directory cannot be written. */
  constructor({ file, synchronous }: Pick<StorageThreadOptions, 'file' | 'synchronous'>) {
    this.#file = file
    try {
      restrictPermissions(file)
      this.#db = new DatabaseSync(file, { timeout: 250 })
      this.#db.exec(`PRAGMA locking_mode=EXCLUSIVE; PRAGMA journal_mode=WAL; PRAGMA synchronous=${synchronous === 'OFF' ? 'OFF' : 'FULL'};
        PRAGMA wal_autocheckpoint=${checkpointPages}; PRAGMA journal_size_limit=67108864; PRAGMA cache_size=-${cacheKib}; BEGIN IMMEDIATE`)
      this.foundFormat = migrate(this.#db, file)
      this.#db.exec('COMMIT')
      this.#insert = this.#db.prepare('INSERT INTO object (id, resource, key, revision, value, checksum) VALUES (?, ?, ?, ?, ?, ?)')
      this.#update = this.#db.prepare('UPDATE object SET revision = ?, value = ?, checksum = ? WHERE id = ?')
      this.#delete = this.#db.prepare('DELETE FROM object WHERE id = ?')
      this.#setRevision = this.#db.prepare(
        // A deferred write is stored after newer ones.
        'INSERT INTO resource (name, revision) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET revision = max(revision, excluded.revision)',
      )
      this.#setMeta = this.#db.prepare(
        'INSERT INTO meta (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value',
      )
      this.#deleteMeta = this.#db.prepare('DELETE FROM meta WHERE name = ?')
      this.#selectKey = this.#db.prepare('SELECT key FROM object WHERE id = ?')
      this.#begin = this.#db.prepare('BEGIN IMMEDIATE')
      this.#commit = this.#db.prepare('COMMIT')
    } catch (error) {
      throw toStartError(error, file)
    }
  }

  /**
   * Grows the write-ahead log to its length between checkpoints, with a transaction that is rolled back: a commit into a file that
   * does not grow waits for its own pages only. Measured on ext4: p50 of a commit of 8 objects 0.16 ms instead of 0.34 ms.
   */
  preallocateWal(): void {
    try {
      const { bavail, bsize } = statfsSync(dirname(this.#file))
      if (bavail * bsize < minFreeDiskBytes) return
      const blobBytes = 64_000
      // Pages that are in the cache at the end are never written to the log. The cache is small because its memory is not returned.
      const blobs = Math.ceil((checkpointPages * 4_096 + preallocationCacheKib * 1_024) / blobBytes) + 1
      this.#db.exec(`PRAGMA cache_size=-${preallocationCacheKib}; BEGIN IMMEDIATE; CREATE TABLE scratch (value BLOB)`)
      const insert = this.#db.prepare(`INSERT INTO scratch VALUES (zeroblob(${blobBytes}))`)
      for (let i = 0; i < blobs; i++) insert.run()
    } catch {
      // A shorter log only makes commits slower.
    }
    if (this.#db.isTransaction) this.#db.exec('ROLLBACK')
    this.#db.exec(`PRAGMA shrink_memory; PRAGMA cache_size=-${cacheKib}`)
  }

  /** Encrypts and decrypts rows with it from now on. */
  encryptWith(encryption: RowEncryption): void {
    this.#encryption = encryption
  }

  /** True when a row is encrypted. It reads the whole table if none is. */
  hasEncryptedRows(): boolean {
    return this.#db.prepare("SELECT 1 FROM object WHERE typeof(value) = 'blob' LIMIT 1").get() !== undefined
  }

  countEncryptedRows(): number {
    return (this.#db.prepare("SELECT count(*) AS rows FROM object WHERE typeof(value) = 'blob'").get() as { rows: number }).rows
  }

  /**
   * Rewrites rows, in one transaction, whose form is not the one that {@link write} would store: clear text, another key, or encrypted without need.
   * @param afterId 0, then what the call before it returned.
   * @returns the id of the last row that was checked; undefined after the end.
   */
  reencrypt(afterId: number): number | undefined {
    const rows = this.#db
      .prepare(`SELECT id, resource, key, CASE typeof(value) WHEN 'blob' THEN substr(value, 1, ${maxHeaderBytes}) END AS header
        FROM object WHERE id > ? ORDER BY id LIMIT ${reencryptedRowsPerStep}`)
      .all(afterId) as { id: number; resource: string; key: string; header: Uint8Array | null }[]
    const outdated = rows.filter(({ resource, header }) => (header ? keyNameOf(header) : undefined) !== this.#encryption?.keyFor(resource))
    if (outdated.length > 0) {
      const select = this.#db.prepare('SELECT value FROM object WHERE id = ?')
      const update = this.#db.prepare('UPDATE object SET value = ?, checksum = ? WHERE id = ?')
      this.#transaction(() => {
        this.#setMeta.run(unclean, 1)
        for (const { id, resource, key } of outdated) {
          const { value: stored } = select.get(id) as { value: string | Uint8Array }
          const value = this.#valueOf(resource, key, typeof stored === 'string' ? stored : this.#encryption!.decrypt(stored, resource, key))
          update.run(value, rowChecksum(this.#seed(resource), value), id)
        }
      })
    }
    return rows.at(-1)?.id
  }

  /** True after {@link reencrypt} has rewritten rows, also in an earlier process, until {@link removeOldForms}. */
  hasOldForms(): boolean {
    return this.#db.prepare('SELECT 1 FROM meta WHERE name = ?').get(unclean) !== undefined
  }

  /** Rewrites the whole file, so that nothing of the former content of re-encrypted rows is in it or in the log. */
  removeOldForms(): void {
    this.#vacuum()
    this.#deleteMeta.run(unclean)
  }

  #vacuum(): void {
    this.#db.exec('VACUUM')
    const { busy } = this.#db.prepare('PRAGMA wal_checkpoint(TRUNCATE)').get() as { busy: number }
    if (busy !== 0) throw new Error(`${this.#file}-wal is in use and cannot be emptied`)
  }

  /** Returns free pages to the disk when they are most of a large file; the result is their size. It takes time proportional to the pages in use. */
  compact(): number {
    const read = (pragma: string) => Object.values(this.#db.prepare(`PRAGMA ${pragma}`).get() ?? {})[0] as number
    const pageSize = read('page_size')
    const freeBytes = read('freelist_count') * pageSize
    const bytes = read('page_count') * pageSize
    if (freeBytes < minCompactionBytes || freeBytes < bytes / 2) return 0
    try {
      this.#vacuum()
    } catch (error) {
      // VACUUM needs disk space for a copy; without it the file is used as it is.
      if (sqliteCode(error) === sqliteFull) return 0
      throw error
    }
    return bytes - read('page_count') * pageSize
  }

  /** What SQLite's check of the file structure reports; empty when it is intact. */
  structureErrors(): string[] {
    try {
      const found = this.#db.prepare('PRAGMA quick_check(20)').all() as { quick_check: string }[]
      return found.map(row => row.quick_check).filter(text => text !== 'ok')
    } catch (error) {
      if (sqliteCode(error) !== sqliteCorrupt) throw error
      return [(error as Error).message]
    }
  }

  rows(): Generator<ReadRow> {
    return readRows(this.#db, formatVersion, this.#encryption)
  }

  /** History up to this revision is from before a restore; 0 when there was none. */
  floor(): number {
    const row = this.#db.prepare("SELECT value FROM meta WHERE name = 'floor'").get() as { value: number } | undefined
    return row?.value ?? 0
  }

  /**
   * Drops all history: a watch from before `revision` gets 410 Gone. Used by a restore, after which clients may know revisions above
   * those of the backup, with content that no longer exists.
   */
  setFloor(revision: number): void {
    this.#setMeta.run('floor', revision)
  }

  /** Revisions that a process may have assigned without storing its writes, by resource: it did not shut down cleanly. */
  reservations(): [string, number][] {
    const rows = this.#db.prepare(`SELECT name, value FROM meta WHERE name LIKE '${reservedPrefix}%'`).all() as {
      name: string
      value: number
    }[]
    return rows.map(({ name, value }) => [name.slice(reservedPrefix.length), value])
  }

  #setReservation(resource: string, revision: number): void {
    if (revision === 0) this.#deleteMeta.run(reservedPrefix + resource)
    else this.#setMeta.run(reservedPrefix + resource, revision)
  }

  /** Copies the database to `path` while writes continue; the copy holds every commit that finished before this call. */
  async backUp(path: string): Promise<void> {
    await backUpDatabase(this.#db, path)
  }

  /** The newest revision of each resource, deletions included. */
  revisions(): [string, number][] {
    const rows = this.#db.prepare('SELECT name, revision FROM resource').all() as { name: string; revision: number }[]
    return rows.map(row => [row.name, row.revision])
  }

  /** Atomic, and on disk when it returns (invariant 5). Throws SQLite's error after rolling back. */
  write({ resources, numbers, keys, texts, reservations }: Omit<CommitBatch, 'type'>): void {
    const newest = new Array<number>(resources.length)
    const seeds = resources.map(name => this.#seed(name))
    this.#transaction(() => {
      for (let i = 0; i < texts.length; i++) {
        const id = numbers[3 * i]!
        const revision = numbers[3 * i + 1]!
        const resource = numbers[3 * i + 2]!
        const text = texts[i]!
        const key = keys[i]!
        if (text === '') this.#delete.run(id)
        else {
          const value = this.#valueOf(resources[resource]!, key, text, id)
          const checksum = rowChecksum(seeds[resource]!, value)
          if (key === '') this.#update.run(revision, value, checksum, id)
          else this.#insert.run(id, resources[resource]!, key, revision, value, checksum)
        }
        newest[resource] = revision
      }
      for (const [index, name] of resources.entries()) this.#setRevision.run(name, newest[index]!)
      for (const [resource, revision] of reservations) this.#setReservation(resource, revision)
    })
  }

  /** The stored form of a text. `key` is '' for an update of row `id`. */
  #valueOf(resource: string, key: string, text: string, id?: number): string | Uint8Array {
    const encryption = this.#encryption
    if (encryption?.keyFor(resource) === undefined) return text
    // Updates have no key, because sending one for every update costs the main thread more than this.
    return encryption.encrypt(text, resource, key || (this.#selectKey.get(id!) as { key: string }).key)
  }

  #transaction(write: () => void): void {
    this.#begin.run()
    try {
      write()
      this.#commit.run()
      this.#checkFileIdentity()
    } catch (error) {
      // SQLite rolls back some failures itself; then there is no open transaction.
      if (this.#db.isTransaction) this.#db.exec('ROLLBACK')
      throw error
    }
  }

  /**
   * SQLite keeps writing to files that were deleted, moved or replaced, and those writes are lost when the process ends. A write must
   * not be acknowledged unless its file can be opened by name again.
   */
  #checkFileIdentity(): void {
    const found = [this.#file, `${this.#file}-wal`].map(path => statSync(path, { throwIfNoEntry: false })?.ino ?? 'missing').join(' ')
    this.#fileIds ??= found
    if (found === this.#fileIds && !found.includes('missing')) return
    throw new Error(
      `${this.#file} or its -wal was removed or replaced while the server runs, nothing more is stored: put it back and restart, or restore a backup`,
    )
  }

  #seed(resource: string): number {
    let seed = this.#seeds.get(resource)
    if (seed === undefined) {
      seed = checksumSeed(resource)
      this.#seeds.set(resource, seed)
    }
    return seed
  }

  close(): void {
    this.#db.close()
  }
}

/** Converts SQLite's errors at startup to {@link ServerStartError}; returns other errors unchanged. */
export function toStartError(error: unknown, file: string): unknown {
  const message = error instanceof Error ? error.message : String(error)
  const startError = (code: ConstructorParameters<typeof ServerStartError>[0], text: string) =>
    new ServerStartError(code, text, { cause: error })
  switch (sqliteCode(error)) {
    case sqliteBusy:
      return startError('DataInUse', `${file} is in use by another oarlock process: stop it first, or choose another data directory`)
    case sqliteFull:
      return startError('DiskFull', `the disk of ${file} is full: free some space and restart the server; no data was lost`)
    case sqliteReadOnly:
    case sqliteCantOpen:
      return startError(
        'DataDirectoryUnwritable',
        `${file} cannot be opened for writing (${message}): check the owner and mode of its directory`,
      )
    case sqliteCorrupt:
    case sqliteNotADatabase:
      return startError('DataCorrupt', `${file} is corrupt (${message}). Nothing was changed. ${recoveryAdvice(file)}`)
    case sqliteIoError:
      return startError('DataDirectoryUnwritable', `${file} cannot be read or written (${message}): check the disk`)
    default:
      return error
  }
}
