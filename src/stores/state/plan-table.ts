import type { Encryption } from './encryption.ts'
import type { StateFile } from './state-file.ts'
import { StateStoreError } from './state-store-error.ts'
import type { ConfigurationRequest, DiffRequest, PlanRequest, StateLimits, StoredPlan } from './state-types.ts'

/** The tables of what Runs plan and apply, encrypted: plans by their digest, diffs by their Run, and of each Stack the last configuration. */
export class PlanTable {
  readonly #file: StateFile
  readonly #encryption: Encryption
  readonly #limits: StateLimits

  constructor(file: StateFile, encryption: Encryption, limits: StateLimits) {
    this.#file = file
    this.#encryption = encryption
    this.#limits = limits
  }

  /** Deletes the oldest plans of the Stack beyond the limit. @throws {StateStoreError} `PlanExists` for another plan of this digest. */
  put({ stackUid, digest, runName, bytes }: PlanRequest, nowMs: number): void {
    const stored = this.get(stackUid, digest)
    if (stored && !Buffer.from(stored.bytes).equals(bytes))
      throw new StateStoreError('PlanExists', `Run ${stored.runName} has stored another plan under digest ${digest}`)
    if (stored) return
    const encrypted = this.#encryption.encrypt(bytes, [stackUid, 'plan', digest])
    this.#file.sql('INSERT INTO plan VALUES (?, ?, ?, ?, ?, ?)').run(stackUid, digest, runName, bytes.byteLength, nowMs, encrypted)
    this.#file
      .sql('DELETE FROM plan WHERE stack_uid = ? AND rowid NOT IN (SELECT rowid FROM plan WHERE stack_uid = ? ORDER BY rowid DESC LIMIT ?)')
      .run(...[stackUid, stackUid, this.#limits.plansPerStack])
  }

  get(stackUid: string, digest: string): StoredPlan | undefined {
    const row = this.#file
      .sql('SELECT run_name, size, created_ms, sealed FROM plan WHERE stack_uid = ? AND digest = ?')
      .get(stackUid, digest) as { run_name: string; size: number; created_ms: number; sealed: Uint8Array } | undefined
    if (row === undefined) return undefined
    const bytes = this.#encryption.decrypt(row.sealed, [stackUid, 'plan', digest], row.size)
    return { digest, runName: row.run_name, createdMs: row.created_ms, bytes }
  }

  /** Deletes the oldest diffs of the Stack beyond the limits. @throws {StateStoreError} `PlanExists` for another diff of this Run. */
  putDiff({ stackUid, runName, bytes }: DiffRequest, nowMs: number): void {
    const stored = this.getDiff(stackUid, runName)
    if (stored && !Buffer.from(stored).equals(bytes))
      throw new StateStoreError('PlanExists', `Run ${runName} has stored another diff of its plan`)
    if (stored) return
    const encrypted = this.#encryption.encrypt(bytes, [stackUid, 'diff', runName])
    this.#file.sql('INSERT INTO diff VALUES (?, ?, ?, ?, ?)').run(stackUid, runName, bytes.byteLength, nowMs, encrypted)
    this.#file
      .sql(`DELETE FROM diff WHERE stack_uid = ? AND rowid IN (
        SELECT rowid FROM (SELECT rowid, row_number() OVER newest position, sum(length(sealed)) OVER newest total
          FROM diff WHERE stack_uid = ? WINDOW newest AS (ORDER BY rowid DESC))
        WHERE position > ? OR (position > 1 AND total > ?))`)
      .run(...[stackUid, stackUid, this.#limits.diffsPerStack, this.#limits.diffBytesPerStack])
  }

  getDiff(stackUid: string, runName: string): Uint8Array | undefined {
    const row = this.#file.sql('SELECT size, sealed FROM diff WHERE stack_uid = ? AND run_name = ?').get(stackUid, runName) as
      | { size: number; sealed: Uint8Array }
      | undefined
    return row && this.#encryption.decrypt(row.sealed, [stackUid, 'diff', runName], row.size)
  }

  /** Replaces the configuration, unless it is the same. */
  putConfiguration({ stackUid, epoch, bytes }: ConfigurationRequest, nowMs: number): void {
    const digest = this.#encryption.digest(bytes)
    const stored = this.#file.sql('SELECT digest FROM configuration WHERE stack_uid = ?').get(stackUid) as { digest: string } | undefined
    if (stored?.digest === digest) return
    const encrypted = this.#encryption.encrypt(bytes, [stackUid, 'configuration', epoch])
    this.#file
      .sql('INSERT OR REPLACE INTO configuration VALUES (?, ?, ?, ?, ?, ?)')
      .run(stackUid, epoch, digest, bytes.byteLength, nowMs, encrypted)
  }

  getConfiguration(stackUid: string): Uint8Array | undefined {
    const row = this.#file.sql('SELECT epoch, size, sealed FROM configuration WHERE stack_uid = ?').get(stackUid) as
      | { epoch: number; size: number; sealed: Uint8Array }
      | undefined
    return row && this.#encryption.decrypt(row.sealed, [stackUid, 'configuration', row.epoch], row.size)
  }
}
