import type { NewestVersion } from './decide-write.ts'
import type { Encryption } from './encryption.ts'
import type { StateFile } from './state-file.ts'
import type { OrphanInfo, StateLimits, StoredVersion, VersionInfo, VersionKind } from './state-types.ts'

export type NewVersion = {
  stackUid: string
  version: number
  kind: VersionKind
  /** Why it is an orphan; null for an accepted version. */
  orphan: string | null
  epoch: number
  author: string
  sequence: number | undefined
  digest: string
  bytes: Uint8Array
  createdMs: number
}

type RetentionRow = { version: number; orphan: string | null }

/** The table of state versions and orphaned versions, encrypted and limited per stack (invariant 10). */
export class VersionTable {
  readonly #file: StateFile
  readonly #encryption: Encryption
  readonly #limits: StateLimits

  constructor(file: StateFile, encryption: Encryption, limits: StateLimits) {
    this.#file = file
    this.#encryption = encryption
    this.#limits = limits
  }

  /** Inserts a version and deletes the oldest ones beyond the limits. */
  insert({ stackUid, version, kind, orphan, epoch, author, sequence, digest, bytes, createdMs }: NewVersion): void {
    const encrypted = this.#encryption.encrypt(bytes, [stackUid, 'version', version, epoch, kind])
    this.#file
      .sql('INSERT INTO version VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)')
      .run(
        ...[stackUid, version, kind, orphan, epoch, author, sequence ?? null, digest],
        ...[bytes.byteLength, encrypted.byteLength, createdMs, encrypted],
      )
    this.#enforceLimits(stackUid, kind)
  }

  /** The newest accepted version of a kind. */
  newest(stackUid: string, kind: VersionKind): NewestVersion | undefined {
    const row = this.#file
      .sql(
        'SELECT version, epoch, digest, sequence, size FROM version WHERE stack_uid = ? AND kind = ? AND orphan IS NULL ORDER BY version DESC LIMIT 1',
      )
      .get(stackUid, kind) as { version: number; epoch: number; digest: string; sequence: number | null; size: number } | undefined
    return row && { ...row, sequence: row.sequence ?? undefined }
  }

  /** The number of an orphan with the same content. */
  findOrphan(stackUid: string, { kind, epoch, digest }: { kind: VersionKind; epoch: number; digest: string }): number | undefined {
    const row = this.#file
      .sql('SELECT version FROM version WHERE stack_uid = ? AND orphan IS NOT NULL AND kind = ? AND epoch = ? AND digest = ?')
      .get(stackUid, kind, epoch, digest) as { version: number } | undefined
    return row?.version
  }

  /** Version number `version` of any kind, or the newest accepted one of `kind`. */
  read(stackUid: string, kind: VersionKind, version: number | undefined): StoredVersion | undefined {
    const query = 'SELECT * FROM version WHERE stack_uid = ?'
    const row = (
      version === undefined
        ? this.#file.sql(`${query} AND kind = ? AND orphan IS NULL ORDER BY version DESC LIMIT 1`).get(stackUid, kind)
        : this.#file.sql(`${query} AND version = ?`).get(stackUid, version)
    ) as (InfoRow & { sealed: Uint8Array }) | undefined
    if (row === undefined) return undefined
    const bytes = this.#encryption.decrypt(row.sealed, [stackUid, 'version', row.version, row.epoch, row.kind], row.size)
    return { ...toInfo(row), orphan: row.orphan !== null, bytes }
  }

  /** Number of the newest accepted version of any kind; 0 without one. */
  newestNumber(stackUid: string): number {
    const row = this.#file
      .sql('SELECT coalesce(max(version), 0) AS newest FROM version WHERE stack_uid = ? AND orphan IS NULL')
      .get(stackUid) as { newest: number }
    return row.newest
  }

  /** Accepted versions, newest first. */
  list(stackUid: string): VersionInfo[] {
    const rows = this.#file.sql(`SELECT ${infoColumns} FROM version WHERE stack_uid = ? AND orphan IS NULL ORDER BY version DESC`)
    return (rows.all(stackUid) as InfoRow[]).map(toInfo)
  }

  /** Orphaned versions, newest first. */
  listOrphans(stackUid: string): OrphanInfo[] {
    const rows = this.#file.sql(`SELECT ${infoColumns} FROM version WHERE stack_uid = ? AND orphan IS NOT NULL ORDER BY version DESC`)
    return (rows.all(stackUid) as InfoRow[]).map(row => ({ ...toInfo(row), reason: row.orphan as OrphanInfo['reason'] }))
  }

  /** Deletes a version that another one replaces. */
  delete(stackUid: string, version: number): void {
    this.#file.sql('DELETE FROM version WHERE stack_uid = ? AND version = ?').run(stackUid, version)
  }

  #enforceLimits(stackUid: string, kind: VersionKind): void {
    const { versionsPerStack, orphansPerStack } = this.#limits
    const beyond = (filter: string) =>
      this.#file.sql(`SELECT version, orphan FROM version WHERE stack_uid = ? AND ${filter} ORDER BY version DESC LIMIT -1 OFFSET ?`)
    this.#drop(stackUid, beyond('kind = ? AND orphan IS NULL').all(stackUid, kind, Math.max(1, versionsPerStack)) as RetentionRow[])
    this.#drop(stackUid, beyond('orphan IS NOT NULL').all(stackUid, Math.max(1, orphansPerStack)) as RetentionRow[])
    this.#drop(stackUid, this.#oldestBeyondBytes(stackUid))
  }

  /** The oldest versions that must be deleted to meet `bytesPerStack`, never the newest of a kind or the newest orphan of a kind. */
  #oldestBeyondBytes(stackUid: string): RetentionRow[] {
    const { total } = this.#file.sql('SELECT coalesce(sum(stored), 0) total FROM version WHERE stack_uid = ?').get(stackUid) as {
      total: number
    }
    let excessBytes = total - this.#limits.bytesPerStack
    if (excessBytes <= 0) return []
    const candidates = this.#file
      .sql(`SELECT version, orphan, stored FROM version AS candidate WHERE stack_uid = ? AND version < (
      SELECT max(version) FROM version WHERE stack_uid = candidate.stack_uid AND kind = candidate.kind AND (orphan IS NULL) = (candidate.orphan IS NULL)
      ) ORDER BY version`)
      .all(stackUid) as (RetentionRow & { stored: number })[]
    const selected: RetentionRow[] = []
    for (const row of candidates) {
      if (excessBytes <= 0) break
      excessBytes -= row.stored
      selected.push(row)
    }
    return selected
  }

  #drop(stackUid: string, rows: readonly RetentionRow[]): void {
    for (const { version, orphan } of rows) {
      this.delete(stackUid, version)
      const column = orphan === null ? 'dropped_versions' : 'dropped_orphans'
      this.#file.sql(`UPDATE stack SET ${column} = ${column} + 1 WHERE stack_uid = ?`).run(stackUid)
    }
  }
}

const infoColumns = 'version, kind, orphan, epoch, author, size, created_ms'
type InfoRow = {
  version: number
  kind: VersionKind
  orphan: string | null
  epoch: number
  author: string
  size: number
  created_ms: number
}

const toInfo = ({ version, kind, epoch, author, size, created_ms }: InfoRow): VersionInfo => ({
  ...{ version, kind, epoch, author, size, createdMs: created_ms },
})
