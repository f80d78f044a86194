import { closeSync, existsSync, mkdirSync, openSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync, type StatementSync } from 'node:sqlite'
import { decideLock, decideUnlock, type Fence, openFence, type UnlockClaim } from './decide-lock.ts'
import { decideWrite, type NewestVersion, type OrphanReason, type WriteAuthor } from './decide-write.ts'
import { Encryption } from './encryption.ts'
import { isSameHolder, type LockHolder } from './lock-holder.ts'
import { StateStoreError, toStateStoreError } from './state-store-error.ts'

/** Bounds of a store (invariant 10). What each one does when it is reached is said beside it. */
export type StateLimits = {
  /** Accepted versions kept per stack and kind; the oldest go first, the newest always stays. Default 50. */
  versionsPerStack: number
  /** Refused writes kept aside per stack; the oldest go first. Default 20. */
  orphansPerStack: number
  /** Stored bytes per stack (compressed, all kinds and orphans); the oldest go first, the newest of a kind always stays. Default 256 MiB. */
  bytesPerStack: number
  /** Plans kept per stack; the oldest go first. Default 5. */
  plansPerStack: number
  /** One version or plan, as given. More is refused with `TooLarge`. Default 64 MiB. */
  maxBytes: number
  /** The whole database. More is refused with `QuotaExceeded`. Default 64 GiB. */
  totalBytes: number
  /** Bytes given to the store and not yet on disk. More is refused with `Overloaded`. Default 256 MiB. */
  pendingBytes: number
}

export const defaultStateLimits: StateLimits = {
  versionsPerStack: 50,
  orphansPerStack: 20,
  bytesPerStack: 256 * 1024 * 1024,
  plansPerStack: 5,
  maxBytes: 64 * 1024 * 1024,
  totalBytes: 64 * 1024 * 1024 * 1024,
  pendingBytes: 256 * 1024 * 1024,
}

/** `terraform`: an engine's state. `inventory`: the small record of an engine that has no state file. Each kind has its own newest version. */
export type VersionKind = 'terraform' | 'inventory'

export type VersionInfo = {
  /** Unique and rising per stack over all kinds; refused writes take numbers too, so one number means one content. */
  version: number
  kind: VersionKind
  epoch: number
  /** The Run's name, or `person` for a write through the Terraform HTTP backend. */
  author: string
  /** Bytes as written. 0 says that the state was deleted. */
  size: number
  createdMs: number
}
export type OrphanInfo = VersionInfo & { reason: OrphanReason }
export type StoredVersion = VersionInfo & { bytes: Uint8Array; orphan: boolean }
export type StoredPlan = { digest: string; runName: string; createdMs: number; bytes: Uint8Array }
export type HeldLock = { holder: LockHolder; sinceMs: number }

/** `isTorn`: what is left of a content that was cut off while it was written; kept aside, whoever has the lock. */
export type WriteRequest = { stackUid: string; author: WriteAuthor; kind: VersionKind; bytes: Uint8Array; isTorn?: boolean }
export type WriteResult =
  /** On disk and current, or nothing new: `version` is the newest one. */
  | { kind: 'accepted'; version: number }
  /** Not current. The content is kept aside as `orphan` (invariant 3). `holder` is who has the lock now, if anyone. */
  | { kind: 'refused'; reason: OrphanReason; orphan: number; currentEpoch: number; holder?: LockHolder }
export type LockRequest = { stackUid: string; holder: LockHolder /** A holder known to be gone. */; breaking?: LockHolder }
export type LockResult =
  /** `broke` is the dead holder whose lock was taken over (invariant 4). */
  | { kind: 'granted'; broke?: LockHolder }
  | { kind: 'refused'; reason: 'Held'; holder: LockHolder; sinceMs: number }
  | { kind: 'refused'; reason: 'StaleEpoch'; currentEpoch: number }
export type UnlockRequest = {
  stackUid: string
  holder: UnlockClaim /** A holder known to be gone: anyone may unlock over it. */
  breaking?: LockHolder
}
export type UnlockResult = { kind: 'released' } | { kind: 'free' } | { kind: 'refused'; holder: LockHolder }
export type StateStats = {
  stacks: number
  versions: number
  orphans: number
  plans: number
  locks: number
  droppedVersions: number
  droppedOrphans: number
  /** Size of the database, with room that is free in it. */
  bytes: number
}

const format = 1
/** "OarS": says in the file's header whose it is. */
const applicationId = 0x4f617253
const keyProbe = 'oarlock state store'

/**
 * The store itself: synchronous, one caller at a time. `store-thread.ts` gives it a thread and groups calls into transactions.
 * `synchronous=FULL` makes a commit return only when it is on disk (invariant 5).
 * @throws {StateStoreError} on opening: `StateKeyMismatch`, `DataTooNew`, `InUse`, `Corrupt`, `DiskFull`, `Unavailable`.
 */
export class StateDatabase {
  readonly #db: DatabaseSync
  readonly #sealer: Encryption
  readonly #limits: StateLimits
  readonly #statements = new Map<string, StatementSync>()

  constructor(options: { directory: string; key: Uint8Array; limits?: Partial<StateLimits> }) {
    this.#sealer = new Encryption(options.key)
    this.#limits = { ...defaultStateLimits, ...options.limits }
    const file = join(options.directory, 'state.db')
    let db: DatabaseSync | undefined
    try {
      mkdirSync(options.directory, { recursive: true, mode: 0o700 })
      // Made here so that it is private from its first byte; SQLite gives its journal the same mode.
      if (!existsSync(file)) closeSync(openSync(file, 'a', 0o600))
      db = new DatabaseSync(file, { timeout: 0 })
      this.#db = db
      this.#open(file)
    } catch (error) {
      try {
        db?.close()
      } catch {
        // The first error is the one that matters.
      }
      throw toStateStoreError(error, `opening ${file}`)
    }
  }

  #open(file: string): void {
    const { user_version: version } = this.#db.prepare('PRAGMA user_version').get() as { user_version: number }
    const { application_id: owner } = this.#db.prepare('PRAGMA application_id').get() as { application_id: number }
    if (version > format) {
      throw new StateStoreError(
        'DataTooNew',
        `${file} has format ${version}, this Oarlock reads up to ${format}; use the newer Oarlock that wrote it`,
      )
    }
    if (version !== 0 && owner !== applicationId) throw new StateStoreError('Corrupt', `${file} is not a state store of Oarlock`)
    // Exclusive before WAL: a second process finds out at once, and no shared-memory file is needed.
    this.#db.exec('PRAGMA locking_mode = EXCLUSIVE')
    this.#db.exec('PRAGMA journal_mode = WAL')
    this.#db.exec('PRAGMA synchronous = FULL')
    this.#db.exec('PRAGMA journal_size_limit = 67108864')
    const { page_size: pageSize } = this.#db.prepare('PRAGMA page_size').get() as { page_size: number }
    this.#db.exec(`PRAGMA max_page_count = ${Math.max(16, Math.floor(this.#limits.totalBytes / pageSize))}`)
    if (version === 0) this.#create()
    const row = this.#sql('SELECT value FROM meta WHERE key = ?').get('keyProbe') as { value: Uint8Array } | undefined
    try {
      if (row === undefined) throw new Error('no key probe')
      this.#sealer.open(row.value, ['', 'keyProbe'], keyProbe.length)
    } catch (cause) {
      throw new StateStoreError('StateKeyMismatch', `the key does not open ${file}: it was written with another one; restore that key`, {
        cause,
      })
    }
  }

  #create(): void {
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
    const probe = this.#sealer.seal(Buffer.from(keyProbe), ['', 'keyProbe'])
    this.#sql('INSERT INTO meta VALUES (?, ?)').run('keyProbe', probe)
    this.#db.exec('COMMIT')
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
      // A full disk makes SQLite roll back by itself.
      if (this.#db.isTransaction) this.#db.exec('ROLLBACK')
      const typed = toStateStoreError(error, 'writing')
      if (typed.code === 'DiskFull' && this.#isOverQuota()) {
        throw new StateStoreError(
          'QuotaExceeded',
          `the state store holds ${this.#limits.totalBytes} bytes, its limit; delete stacks or raise the limit`,
          {
            cause: error,
          },
        )
      }
      throw typed
    }
  }

  writeVersion({ stackUid, author, kind, bytes, isTorn }: WriteRequest, nowMs: number): WriteResult {
    this.#checkUid(stackUid)
    this.#checkSize(bytes, 'state')
    if (author.kind === 'Run') checkEpoch(author.epoch)
    const { fence, nextVersion } = this.#stack(stackUid)
    const digest = this.#sealer.digest(bytes)
    const lock = this.#lock(stackUid)?.holder
    const verdict = decideWrite({ fence, lock, newest: this.#newest(stackUid, kind) }, author, digest, { isTorn })
    const insert = (epoch: number, orphan: string | null) => {
      const sealed = this.#sealer.seal(bytes, [stackUid, 'version', nextVersion, epoch, kind])
      this.#sql('INSERT INTO version VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)').run(
        ...[stackUid, nextVersion, kind, orphan, epoch, author.kind === 'Run' ? author.runName : 'person'],
        ...[author.kind === 'Run' ? (author.sequence ?? null) : null, digest, bytes.byteLength, sealed.byteLength, nowMs, sealed],
      )
    }
    switch (verdict.kind) {
      case 'keep':
        if (verdict.fence.minEpoch !== fence.minEpoch) this.#setStack(stackUid, verdict.fence, nextVersion)
        return { kind: 'accepted', version: verdict.version }
      case 'accept':
        this.#setStack(stackUid, verdict.fence, nextVersion + 1)
        insert(verdict.epoch, null)
        this.#trimVersions(stackUid, kind)
        return { kind: 'accepted', version: nextVersion }
      case 'orphan': {
        const refused = {
          kind: 'refused' as const,
          reason: verdict.reason,
          currentEpoch: fence.maxSeenEpoch,
          ...(lock && { holder: lock }),
        }
        const twin = this.#sql(
          'SELECT version FROM version WHERE stack_uid = ? AND orphan IS NOT NULL AND kind = ? AND epoch = ? AND digest = ?',
        ).get(stackUid, kind, verdict.epoch, digest) as { version: number } | undefined
        // The same content refused again (a retry whose answer was lost) must not push other orphans out.
        if (twin !== undefined) return { ...refused, orphan: twin.version }
        this.#setStack(stackUid, fence, nextVersion + 1)
        insert(verdict.epoch, verdict.reason)
        this.#trimVersions(stackUid, kind)
        return { ...refused, orphan: nextVersion }
      }
    }
  }

  readVersion({ stackUid, version, kind }: { stackUid: string; version?: number; kind: VersionKind }): StoredVersion | undefined {
    this.#checkUid(stackUid)
    const columns = 'SELECT * FROM version WHERE stack_uid = ?'
    const row = (
      version === undefined
        ? this.#sql(`${columns} AND kind = ? AND orphan IS NULL ORDER BY version DESC LIMIT 1`).get(stackUid, kind)
        : this.#sql(`${columns} AND version = ?`).get(stackUid, version)
    ) as VersionRow | undefined
    if (row === undefined) return undefined
    const bytes = this.#sealer.open(row.sealed, [stackUid, 'version', row.version, row.epoch, row.kind], row.size)
    return { ...toInfo(row), orphan: row.orphan !== null, bytes }
  }

  versions(stackUid: string): VersionInfo[] {
    this.#checkUid(stackUid)
    const rows = this.#sql(`SELECT ${listed} FROM version WHERE stack_uid = ? AND orphan IS NULL ORDER BY version DESC`).all(stackUid)
    return (rows as ListedRow[]).map(toInfo)
  }

  orphans(stackUid: string): OrphanInfo[] {
    this.#checkUid(stackUid)
    const rows = this.#sql(`SELECT ${listed} FROM version WHERE stack_uid = ? AND orphan IS NOT NULL ORDER BY version DESC`).all(stackUid)
    return (rows as ListedRow[]).map(row => ({ ...toInfo(row), reason: row.orphan as OrphanInfo['reason'] }))
  }

  lock({ stackUid, holder, breaking }: LockRequest, nowMs: number): LockResult {
    this.#checkUid(stackUid)
    if (holder.kind === 'Run') checkEpoch(holder.epoch)
    const { fence, nextVersion } = this.#stack(stackUid)
    const current = this.#lock(stackUid)
    // Only the very holder that was proven gone: another one may have come in the meantime (invariant 4).
    const isBroken =
      current !== undefined && breaking !== undefined && isSameHolder(current.holder, breaking) && !isSameHolder(current.holder, holder)
    const verdict = decideLock(fence, isBroken ? undefined : current?.holder, holder)
    if (verdict.kind === 'stale') return { kind: 'refused', reason: 'StaleEpoch', currentEpoch: fence.maxSeenEpoch }
    if (verdict.kind === 'held') return { kind: 'refused', reason: 'Held', holder: verdict.holder, sinceMs: current?.sinceMs ?? nowMs }
    if (!verdict.again) {
      this.#setStack(stackUid, verdict.fence, nextVersion)
      this.#sql('INSERT OR REPLACE INTO lock VALUES (?, ?, ?)').run(stackUid, JSON.stringify(holder), nowMs)
    }
    return { kind: 'granted', ...(isBroken && { broke: current.holder }) }
  }

  unlock({ stackUid, holder, breaking }: UnlockRequest): UnlockResult {
    this.#checkUid(stackUid)
    const { fence, nextVersion } = this.#stack(stackUid)
    const current = this.#lock(stackUid)?.holder
    const isBroken = current !== undefined && breaking !== undefined && isSameHolder(current, breaking)
    const verdict = decideUnlock(current, holder)
    if (verdict.kind === 'free') return { kind: 'free' }
    if (verdict.kind === 'held') {
      if (!isBroken) return { kind: 'refused', holder: verdict.holder }
      // The dead Run must not write any more.
      this.#setStack(stackUid, { ...fence, minEpoch: fence.maxSeenEpoch + 1 }, nextVersion)
    }
    this.#sql('DELETE FROM lock WHERE stack_uid = ?').run(stackUid)
    return { kind: 'released' }
  }

  currentLock(stackUid: string): HeldLock | undefined {
    this.#checkUid(stackUid)
    return this.#lock(stackUid)
  }

  putPlan(
    { stackUid, digest, runName, bytes }: { stackUid: string; digest: string; runName: string; bytes: Uint8Array },
    nowMs: number,
  ): void {
    this.#checkUid(stackUid)
    this.#checkSize(bytes, 'plan')
    const sealed = this.#sealer.seal(bytes, [stackUid, 'plan', digest])
    this.#sql('INSERT OR REPLACE INTO plan VALUES (?, ?, ?, ?, ?, ?)').run(stackUid, digest, runName, bytes.byteLength, nowMs, sealed)
    this.#sql(
      'DELETE FROM plan WHERE stack_uid = ? AND rowid NOT IN (SELECT rowid FROM plan WHERE stack_uid = ? ORDER BY rowid DESC LIMIT ?)',
    ).run(...[stackUid, stackUid, this.#limits.plansPerStack])
  }

  getPlan(stackUid: string, digest: string): StoredPlan | undefined {
    this.#checkUid(stackUid)
    const row = this.#sql('SELECT run_name, size, created_ms, sealed FROM plan WHERE stack_uid = ? AND digest = ?').get(stackUid, digest) as
      | { run_name: string; size: number; created_ms: number; sealed: Uint8Array }
      | undefined
    if (row === undefined) return undefined
    return {
      digest,
      runName: row.run_name,
      createdMs: row.created_ms,
      bytes: this.#sealer.open(row.sealed, [stackUid, 'plan', digest], row.size),
    }
  }

  deleteStack(stackUid: string): void {
    this.#checkUid(stackUid)
    for (const table of ['version', 'plan', 'lock', 'stack']) this.#sql(`DELETE FROM ${table} WHERE stack_uid = ?`).run(stackUid)
  }

  stats(): StateStats {
    const row = this.#sql(`SELECT
      (SELECT count(*) FROM stack) stacks, (SELECT count(*) FROM version WHERE orphan IS NULL) versions,
      (SELECT count(*) FROM version WHERE orphan IS NOT NULL) orphans, (SELECT count(*) FROM plan) plans, (SELECT count(*) FROM lock) locks,
      (SELECT coalesce(sum(dropped_versions), 0) FROM stack) droppedVersions, (SELECT coalesce(sum(dropped_orphans), 0) FROM stack) droppedOrphans,
      (SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()) bytes`).get()
    return { ...(row as StateStats) }
  }

  close(): void {
    this.#db.close()
  }

  #stack(stackUid: string): { fence: Fence; nextVersion: number } {
    const row = this.#sql('SELECT min_epoch, max_seen_epoch, next_version FROM stack WHERE stack_uid = ?').get(stackUid) as
      | { min_epoch: number; max_seen_epoch: number; next_version: number }
      | undefined
    if (row === undefined) return { fence: openFence, nextVersion: 1 }
    return { fence: { minEpoch: row.min_epoch, maxSeenEpoch: row.max_seen_epoch }, nextVersion: row.next_version }
  }

  #setStack(stackUid: string, { minEpoch, maxSeenEpoch }: Fence, nextVersion: number): void {
    // The outer max() keeps the fence from ever going down (invariant 3).
    this.#sql(`INSERT INTO stack (stack_uid, min_epoch, max_seen_epoch, next_version) VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE SET
      min_epoch = max(min_epoch, excluded.min_epoch), max_seen_epoch = max(max_seen_epoch, excluded.max_seen_epoch),
      next_version = max(next_version, excluded.next_version)`).run(stackUid, minEpoch, maxSeenEpoch, nextVersion)
  }

  #lock(stackUid: string): HeldLock | undefined {
    const row = this.#sql('SELECT holder, since_ms FROM lock WHERE stack_uid = ?').get(stackUid) as
      | { holder: string; since_ms: number }
      | undefined
    return row && { holder: JSON.parse(row.holder) as LockHolder, sinceMs: row.since_ms }
  }

  #newest(stackUid: string, kind: VersionKind): NewestVersion | undefined {
    const row = this.#sql(
      'SELECT version, epoch, digest, sequence FROM version WHERE stack_uid = ? AND kind = ? AND orphan IS NULL ORDER BY version DESC LIMIT 1',
    ).get(stackUid, kind) as { version: number; epoch: number; digest: string; sequence: number | null } | undefined
    return row && { ...row, sequence: row.sequence ?? undefined }
  }

  #trimVersions(stackUid: string, kind: VersionKind): void {
    const { versionsPerStack, orphansPerStack, bytesPerStack } = this.#limits
    const drop = (rows: { version: number; orphan: string | null }[]) => {
      for (const { version, orphan } of rows) {
        this.#sql('DELETE FROM version WHERE stack_uid = ? AND version = ?').run(stackUid, version)
        const column = orphan === null ? 'dropped_versions' : 'dropped_orphans'
        this.#sql(`UPDATE stack SET ${column} = ${column} + 1 WHERE stack_uid = ?`).run(stackUid)
      }
    }
    const beyond = (filter: string) =>
      this.#sql(`SELECT version, orphan FROM version WHERE stack_uid = ? AND ${filter} ORDER BY version DESC LIMIT -1 OFFSET ?`)
    type Row = { version: number; orphan: string | null }
    drop(beyond('kind = ? AND orphan IS NULL').all(stackUid, kind, Math.max(1, versionsPerStack)) as Row[])
    drop(beyond('orphan IS NOT NULL').all(stackUid, Math.max(1, orphansPerStack)) as Row[])
    const { total } = this.#sql('SELECT coalesce(sum(stored), 0) total FROM version WHERE stack_uid = ?').get(stackUid) as { total: number }
    if (total <= bytesPerStack) return
    let over = total - bytesPerStack
    const oldestFirst = this.#sql(`SELECT version, orphan, stored FROM version AS candidate WHERE stack_uid = ? AND version < (
      SELECT max(version) FROM version WHERE stack_uid = candidate.stack_uid AND kind = candidate.kind AND (orphan IS NULL) = (candidate.orphan IS NULL)
      ) ORDER BY version`).all(stackUid) as (Row & { stored: number })[]
    const doomed: Row[] = []
    for (const row of oldestFirst) {
      if (over <= 0) break
      over -= row.stored
      doomed.push(row)
    }
    drop(doomed)
  }

  #isOverQuota(): boolean {
    const { page_size: pageSize } = this.#sql('PRAGMA page_size').get() as { page_size: number }
    const { page_count: pages } = this.#sql('PRAGMA page_count').get() as { page_count: number }
    // Within one large write of the limit: SQLite does not say which of the two limits it met.
    return pages * pageSize + this.#limits.maxBytes >= this.#limits.totalBytes
  }

  #checkUid(stackUid: string): void {
    if (typeof stackUid !== 'string' || stackUid === '' || stackUid.length > 128) {
      throw new StateStoreError('InvalidArgument', `stackUid must be 1 to 128 characters, got ${JSON.stringify(stackUid)?.slice(0, 140)}`)
    }
  }

  #checkSize(bytes: Uint8Array, what: string): void {
    const { maxBytes } = this.#limits
    if (bytes.byteLength > maxBytes)
      throw new StateStoreError('TooLarge', `the ${what} has ${bytes.byteLength} bytes, at most ${maxBytes} are allowed`)
  }

  #sql(text: string): StatementSync {
    let statement = this.#statements.get(text)
    if (statement === undefined) {
      statement = this.#db.prepare(text)
      this.#statements.set(text, statement)
    }
    return statement
  }
}

function checkEpoch(epoch: number): void {
  if (!Number.isSafeInteger(epoch) || epoch < 0)
    throw new StateStoreError('InvalidArgument', `epoch must be a whole number >= 0, got ${epoch}`)
}

const listed = 'version, kind, orphan, epoch, author, size, created_ms'
type ListedRow = {
  version: number
  kind: VersionKind
  orphan: string | null
  epoch: number
  author: string
  size: number
  created_ms: number
}
type VersionRow = ListedRow & { sealed: Uint8Array }

const toInfo = ({ version, kind, epoch, author, size, created_ms }: ListedRow): VersionInfo => ({
  ...{ version, kind, epoch, author, size, createdMs: created_ms },
})
