import { CheckpointTable } from './checkpoint-table.ts'
import type { UpdateId } from './decide-journal.ts'
import { decideLock, decideUnlock, epochAfterRestore, type Fence, fenceAfterReset, initialFence } from './decide-lock.ts'
import { decideWrite, type OrphanReason } from './decide-write.ts'
import { Encryption } from './encryption.ts'
import type { LockHolder } from './lock-holder.ts'
import { PlanTable } from './plan-table.ts'
import { checkPulumiState, PulumiState } from './pulumi-state.ts'
import { StateFile } from './state-file.ts'
import { StateStoreError } from './state-store-error.ts'
import {
  type AcceptRequest,
  type AppendRequest,
  type AppendResult,
  type CompleteRequest,
  type CompleteResult,
  type ConfigurationRequest,
  type ConfigurationResult,
  type DiffRequest,
  defaultStateLimits,
  type FenceReset,
  type FenceResetResult,
  type HeldLock,
  type LockRequest,
  type LockResult,
  type NewestPulumi,
  type OrphanInfo,
  type PlanRequest,
  type PulumiFacts,
  type StateLimits,
  type StateStats,
  type StateWriteResult,
  type StoredPlan,
  type StoredVersion,
  type TokenGeneration,
  type UnlockRequest,
  type UnlockResult,
  type VersionInfo,
  type VersionKind,
  type WriteRequest,
} from './state-types.ts'
import { type NewVersion, VersionTable } from './version-table.ts'

export type StateDatabaseOptions = { directory: string; key: Uint8Array; limits?: Partial<StateLimits> }

/**
 * State versions, locks and plans in one SQLite file: synchronous, one caller at a time. `store-thread.ts` runs it in a thread
 * and groups calls into transactions. What is allowed is decided by `decide-write.ts` and `decide-lock.ts`.
 * Above 400 lines because each method is a call that the thread finds by its name.
 * @throws {StateStoreError} on opening: `StateKeyMismatch`, `DataTooNew`, `InUse`, `Corrupt`, `DiskFull`, `Unavailable`.
 */
export class StateDatabase {
  readonly #file: StateFile
  readonly #versions: VersionTable
  readonly #checkpoints: CheckpointTable
  readonly #pulumi: PulumiState
  readonly #plans: PlanTable
  readonly #encryption: Encryption
  readonly #limits: StateLimits

  constructor({ directory, key, limits }: StateDatabaseOptions) {
    this.#encryption = new Encryption(key)
    this.#limits = { ...defaultStateLimits, ...limits }
    this.#file = new StateFile(directory, this.#encryption, this.#limits)
    this.#versions = new VersionTable(this.#file, this.#encryption, this.#limits)
    this.#checkpoints = new CheckpointTable(this.#file)
    this.#plans = new PlanTable(this.#file, this.#encryption, this.#limits)
    this.#pulumi = new PulumiState(this.#file, this.#versions, this.#encryption, this.#limits)
  }

  /**
   * Runs `work` as one transaction: all of it is on disk when this returns, or nothing of it happened.
   * @throws what `work` threw, or a {@link StateStoreError}.
   */
  transaction<T>(work: () => T): T {
    try {
      return this.#file.transaction(work)
    } catch (error) {
      this.#pulumi.clearCaches()
      throw error
    }
  }

  /** See {@link StateFile.backUp}. */
  backUp(path: string): Promise<void> {
    return this.#file.backUp(path)
  }

  writeVersion(request: WriteRequest, nowMs: number): StateWriteResult {
    this.#checkUid(request.stackUid)
    this.#checkSize(request.bytes, 'state')
    return this.#write(request, nowMs)
  }

  #write(request: WriteRequest, nowMs: number): StateWriteResult {
    const { stackUid, author, kind, bytes, orphanReason, update, expectedVersion = 0 } = request
    if (author.kind === 'Run') checkEpoch(author.epoch)
    if (kind === 'pulumi' && bytes.byteLength > 0) checkPulumiState(bytes)
    const { fence, nextVersion: next } = this.#stack(stackUid)
    const digest = this.#encryption.digest(bytes)
    const lock = this.#lock(stackUid)?.holder
    // A user who writes to a store that has lost versions decides that the Stack continues with theirs.
    const isReplacement = author.kind === 'User' && this.newestVersion(stackUid) < expectedVersion
    const nextVersion = isReplacement ? Math.max(next, expectedVersion + 1) : next
    // With an open journal the newest version is only a part of the state: equal content is a change of it.
    const isPart = kind === 'pulumi' && this.#pulumi.openJournal(stackUid) !== undefined
    const newest = isReplacement || isPart ? undefined : this.#versions.newest(stackUid, kind)
    const decision = decideWrite({ fence, lock, newest }, author, digest, orphanReason)
    const insert = (epoch: number, orphan: string | null) => {
      const [name, sequence] = author.kind === 'Run' ? [author.runName, author.sequence] : [userAuthor(author.name), undefined]
      const version = { stackUid, version: nextVersion, kind, orphan, epoch, digest, bytes, createdMs: nowMs }
      this.#versions.insert({ ...version, author: name, sequence })
    }
    switch (decision.kind) {
      case 'keep':
        if (decision.fence.minEpoch !== fence.minEpoch) this.#setStack(stackUid, decision.fence, nextVersion)
        return { kind: 'accepted', version: decision.version }
      case 'accept':
        // What was acknowledged before is a version of its own.
        if (author.kind === 'User') this.#pulumi.compactOrOrphan(stackUid, nowMs)
        else if (kind === 'pulumi') this.#pulumi.compact(stackUid)
        this.#setStack(stackUid, decision.fence, nextVersion + 1)
        if (author.kind === 'Run' && update !== undefined) this.#replaceCheckpoint(stackUid, kind, { ...author, update }, nextVersion)
        insert(decision.epoch, null)
        return { kind: 'accepted', version: nextVersion }
      case 'orphan': {
        const [name, sequence] = author.kind === 'Run' ? [author.runName, author.sequence] : [userAuthor(author.name), undefined]
        const { epoch, reason } = decision
        return this.#reject({ stackUid, kind, reason, epoch, author: name, sequence, digest, bytes, createdMs: nowMs })
      }
    }
  }

  /** Before a checkpoint becomes version `next`: the one before of its update is none any more. */
  #replaceCheckpoint(stackUid: string, kind: VersionKind, update: UpdateId, next: number): void {
    const replaced = this.#checkpoints.versionOf(stackUid, update)
    if (replaced !== undefined && replaced === this.#versions.newest(stackUid, kind)?.version) this.#versions.delete(stackUid, replaced)
    this.#checkpoints.set(stackUid, update, next)
  }

  /** Stores rejected content as an orphan (invariant 3). */
  #reject({ reason, ...content }: Omit<NewVersion, 'version' | 'orphan'> & { reason: OrphanReason }): StateWriteResult {
    const { stackUid } = content
    const { fence, nextVersion } = this.#stack(stackUid)
    const lock = this.#lock(stackUid)?.holder
    const rejected = { kind: 'rejected' as const, reason, currentEpoch: fence.maxSeenEpoch, ...(lock && { holder: lock }) }
    // The same content rejected again (a retry whose response was lost) must not displace other orphans.
    const existing = this.#versions.findOrphan(stackUid, content)
    if (existing !== undefined) return { ...rejected, orphan: existing }
    this.#setStack(stackUid, fence, nextVersion + 1)
    this.#versions.insert({ ...content, version: nextVersion, orphan: reason })
    return { ...rejected, orphan: nextVersion }
  }

  /**
   * Stores entries of the update of a Run, all or none of them, or without those that begin operations (`full`); those that are stored already change nothing. `version` is the number of the state that
   * they result in.
   * @throws {StateStoreError} `InvalidArgument`, `TooLarge`, `JournalConflict`, `JournalUnreadable`.
   */
  appendJournal({ stackUid, runName, epoch, update, bytes, cliVersion, orphanReason }: AppendRequest, nowMs: number): AppendResult {
    this.#checkUid(stackUid)
    this.#checkSize(bytes, 'batch of journal entries', this.#limits.journalBatchBytes)
    checkEpoch(epoch)
    const { fence, nextVersion } = this.#stack(stackUid)
    const lock = this.#lock(stackUid)?.holder
    const digest = this.#encryption.digest(bytes)
    const claim = { epoch, runName, update, cliVersion }
    const decision = decideWrite({ fence, lock, newest: undefined }, { kind: 'Run', runName, epoch }, digest, orphanReason)
    const append = this.#pulumi.prepareAppend(stackUid, claim, bytes, decision.kind === 'accept')
    const full = append.full === undefined ? undefined : { kind: 'full' as const, message: append.full }
    if (full && append.entries.length === 0) return full
    if (decision.kind === 'accept' && append.decision !== 'closed') {
      const isNew = append.decision === 'begin'
      this.#setStack(stackUid, decision.fence, nextVersion + (isNew ? 1 : 0))
      const { version } = this.#pulumi.append(stackUid, claim, append, nextVersion, nowMs)
      return full ?? { kind: 'accepted', version }
    }
    const reason = decision.kind === 'orphan' ? decision.reason : 'JournalClosed'
    return this.#reject({
      stackUid,
      kind: 'pulumi-journal',
      reason,
      epoch,
      author: runName,
      sequence: undefined,
      digest,
      bytes,
      createdMs: nowMs,
    })
  }

  /**
   * The update has ended: its entries become a version. A completion that arrives again changes nothing, also after the next update has begun.
   * @throws {StateStoreError} `JournalUnreadable`; the entries are kept.
   */
  completeJournal({ stackUid, runName, epoch, update }: CompleteRequest, nowMs: number): CompleteResult {
    this.#checkUid(stackUid)
    checkEpoch(epoch)
    const { fence } = this.#stack(stackUid)
    if (epoch < fence.minEpoch) return { kind: 'rejected', reason: 'StaleEpoch', currentEpoch: fence.maxSeenEpoch }
    const lock = this.#lock(stackUid)?.holder
    const mayWrite = lock === undefined || (lock.kind === 'Run' && lock.runName === runName && lock.epoch === epoch)
    return { kind: 'accepted', version: this.#pulumi.complete(stackUid, { runName, epoch, update }, mayWrite, nowMs) }
  }

  /** Number of journals of updates that have not completed. */
  get openJournals(): number {
    return this.#pulumi.openJournals
  }

  /** Undefined without a state of Pulumi. */
  pulumiFacts(stackUid: string): PulumiFacts | undefined {
    this.#checkUid(stackUid)
    return this.#pulumi.facts(stackUid)
  }

  /** Undefined without a state of Pulumi. The content is not read, unless the size of a large state must be measured. */
  newestPulumi(stackUid: string): NewestPulumi | undefined {
    this.#checkUid(stackUid)
    return this.#pulumi.newest(stackUid)
  }

  /** Number of the newest accepted version of any kind, or of the open journal; 0 without one. */
  newestVersion(stackUid: string): number {
    this.#checkUid(stackUid)
    return Math.max(this.#versions.newestNumber(stackUid), this.#pulumi.openJournal(stackUid)?.version ?? 0)
  }

  /** The newest version again, whatever its size, as a new one above `expectedVersion`; without a state, an empty one. Rejected as a write of the user. */
  acceptState({ stackUid, user, expectedVersion }: AcceptRequest, nowMs: number): StateWriteResult {
    const [newest] = this.versions(stackUid)
    const kind = newest?.kind ?? 'terraform'
    const bytes = this.readVersion({ stackUid, kind })?.bytes ?? new Uint8Array()
    const author = { kind: 'User', lockId: undefined, name: user } as const
    return this.#write({ stackUid, author, kind, bytes, expectedVersion }, nowMs)
  }

  readVersion({ stackUid, version, kind }: { stackUid: string; version?: number; kind: VersionKind }): StoredVersion | undefined {
    this.#checkUid(stackUid)
    const journal = this.#pulumi.openJournal(stackUid)
    if (journal && (version === undefined ? kind === 'pulumi' : version === journal.version)) return this.#pulumi.read(stackUid, journal)
    return this.#versions.read(stackUid, kind, version)
  }

  versions(stackUid: string): VersionInfo[] {
    this.#checkUid(stackUid)
    const journal = this.#pulumi.openJournal(stackUid)
    const versions = this.#versions.list(stackUid)
    return journal ? [...versions, this.#pulumi.infoOf(journal)].sort((a, b) => b.version - a.version) : versions
  }

  orphans(stackUid: string): OrphanInfo[] {
    this.#checkUid(stackUid)
    return this.#versions.listOrphans(stackUid)
  }

  lock({ stackUid, holder, abandonedHolder }: LockRequest, nowMs: number): LockResult {
    this.#checkUid(stackUid)
    if (holder.kind === 'Run') checkEpoch(holder.epoch)
    const { fence, nextVersion } = this.#stack(stackUid)
    const current = this.#lock(stackUid)
    const decision = decideLock({ fence, held: current?.holder, claim: holder, abandonedHolder })
    if (decision.kind === 'stale') return { kind: 'rejected', reason: 'StaleEpoch', currentEpoch: fence.maxSeenEpoch }
    if (decision.kind === 'held') return { kind: 'rejected', reason: 'Held', holder: decision.holder, sinceMs: current?.sinceMs ?? nowMs }
    if (!decision.isRepeated) {
      this.#setStack(stackUid, decision.fence, nextVersion)
      this.#file.sql('INSERT OR REPLACE INTO lock VALUES (?, ?, ?)').run(stackUid, JSON.stringify(holder), nowMs)
    }
    return { kind: 'granted', ...(decision.brokenHolder && { brokenHolder: decision.brokenHolder }) }
  }

  unlock({ stackUid, holder, abandonedHolder }: UnlockRequest): UnlockResult {
    this.#checkUid(stackUid)
    const { fence, nextVersion } = this.#stack(stackUid)
    const held = this.#lock(stackUid)?.holder
    const decision = decideUnlock({ fence, held, claim: holder, abandonedHolder })
    if (decision.kind === 'free') return { kind: 'free' }
    if (decision.kind === 'held') return { kind: 'rejected', holder: decision.holder }
    if (decision.fence) this.#setStack(stackUid, decision.fence, nextVersion)
    this.#file.sql('DELETE FROM lock WHERE stack_uid = ?').run(stackUid)
    return { kind: 'released' }
  }

  currentLock(stackUid: string): HeldLock | undefined {
    this.#checkUid(stackUid)
    return this.#lock(stackUid)
  }

  /** What decides whether a Run of the Stack may start. */
  facts(stackUid: string): { newest: number; lock: HeldLock | undefined; pulumi: PulumiFacts | undefined } {
    return { newest: this.newestVersion(stackUid), lock: this.currentLock(stackUid), pulumi: this.pulumiFacts(stackUid) }
  }

  /** UIDs of the Stacks with the lock of a user or a tool (or of a holder that cannot be read), and of those with a state of Pulumi. */
  stacksWithFacts(): string[] {
    const holder = `CASE WHEN json_valid(holder) THEN json_extract(holder, '$.kind') END`
    const rows = this.#file
      .sql(`SELECT stack_uid uid FROM lock WHERE ${holder} IS NOT 'Run' UNION SELECT stack_uid FROM journal
        UNION SELECT stack_uid FROM version WHERE kind = 'pulumi'`)
      .all() as { uid: string }[]
    return rows.map(({ uid }) => uid)
  }

  putPlan(request: PlanRequest, nowMs: number): void {
    this.#checkUid(request.stackUid)
    this.#checkSize(request.bytes, 'plan')
    this.#plans.put(request, nowMs)
  }

  getPlan(stackUid: string, digest: string): StoredPlan | undefined {
    this.#checkUid(stackUid)
    return this.#plans.get(stackUid, digest)
  }

  /** Once per Run, like a plan: what a user reads is what the Run stored with its plan. */
  putDiff(request: DiffRequest, nowMs: number): void {
    this.#checkUid(request.stackUid)
    this.#checkSize(request.bytes, 'diff')
    this.#plans.putDiff(request, nowMs)
  }

  getDiff(stackUid: string, runName: string): Uint8Array | undefined {
    this.#checkUid(stackUid)
    return this.#plans.getDiff(stackUid, runName)
  }

  /** Keeps what the Run applies, instead of what an earlier one has applied. A Run with an older epoch than the fence applies nothing (invariant 3). */
  putConfiguration({ stackUid, epoch, bytes }: ConfigurationRequest, nowMs: number): ConfigurationResult {
    this.#checkUid(stackUid)
    checkEpoch(epoch)
    this.#checkSize(bytes, 'configuration')
    const { fence } = this.#stack(stackUid)
    if (epoch < fence.minEpoch) return { kind: 'rejected', reason: 'StaleEpoch', currentEpoch: fence.maxSeenEpoch }
    this.#plans.putConfiguration({ stackUid, epoch, bytes }, nowMs)
    return { kind: 'stored' }
  }

  getConfiguration(stackUid: string): Uint8Array | undefined {
    this.#checkUid(stackUid)
    return this.#plans.getConfiguration(stackUid)
  }

  fence(stackUid: string): Fence {
    this.#checkUid(stackUid)
    return this.#stack(stackUid).fence
  }

  /** `previous` is the fence before. */
  resetFence({ stackUid, lastEpoch, force }: FenceReset): FenceResetResult {
    this.#checkUid(stackUid)
    checkEpoch(lastEpoch)
    const lock = this.#lock(stackUid)
    if (lock?.holder.kind === 'Run' && !force) return { kind: 'rejected', reason: 'Held', ...lock }
    const { fence: previous, nextVersion } = this.#stack(stackUid)
    const fence = fenceAfterReset(lastEpoch)
    this.#setStack(stackUid, fence, nextVersion)
    this.#file
      .sql('UPDATE stack SET min_epoch = ?, max_seen_epoch = ? WHERE stack_uid = ?')
      .run(fence.minEpoch, fence.maxSeenEpoch, stackUid)
    return { kind: 'reset', previous, fence }
  }

  /** After a restore: excludes every Run that may have started since the backup. Returns the last excluded epoch of each Stack. */
  raiseFences(): Map<string, number> {
    const rows = this.#file.sql('SELECT stack_uid uid, max_seen_epoch epoch FROM stack').all() as { uid: string; epoch: number }[]
    const raised = new Map(rows.map(({ uid, epoch }) => [uid, epochAfterRestore(epoch)]))
    this.#file.transaction(() => {
      for (const [uid, epoch] of raised) this.#setStack(uid, fenceAfterReset(epoch), 1)
    })
    return raised
  }

  tokenGeneration(stackUid: string): TokenGeneration | undefined {
    this.#checkUid(stackUid)
    const row = this.#file.sql('SELECT value FROM meta WHERE key = ?').get(tokenKey(stackUid)) as { value: Uint8Array } | undefined
    return row && (JSON.parse(Buffer.from(row.value).toString()) as TokenGeneration)
  }

  setTokenGeneration(stackUid: string, generation: TokenGeneration): void {
    this.#checkUid(stackUid)
    this.#file.sql('INSERT OR REPLACE INTO meta VALUES (?, ?)').run(tokenKey(stackUid), Buffer.from(JSON.stringify(generation)))
  }

  deleteStack(stackUid: string): void {
    this.#checkUid(stackUid)
    this.#file.sql('DELETE FROM meta WHERE key = ?').run(tokenKey(stackUid))
    for (const table of [
      'version',
      'plan',
      'diff',
      'configuration',
      'journal',
      'journal_digest',
      'journal_batch',
      'checkpoint',
      'lock',
      'stack',
    ])
      this.#file.sql(`DELETE FROM ${table} WHERE stack_uid = ?`).run(stackUid)
    this.#pulumi.clearCaches()
  }

  stats(): StateStats {
    const row = this.#file
      .sql(`SELECT
      (SELECT count(*) FROM stack) stacks, (SELECT count(*) FROM version WHERE orphan IS NULL) versions,
      (SELECT count(*) FROM version WHERE orphan IS NOT NULL) orphans, (SELECT count(*) FROM plan) plans, (SELECT count(*) FROM lock) locks,
      (SELECT coalesce(sum(dropped_versions), 0) FROM stack) droppedVersions, (SELECT coalesce(sum(dropped_orphans), 0) FROM stack) droppedOrphans`)
      .get() as Omit<StateStats, 'bytes' | 'journals'>
    return { ...row, journals: this.openJournals, bytes: this.#file.bytes }
  }

  close(): void {
    this.#file.close()
  }

  #stack(stackUid: string): { fence: Fence; nextVersion: number } {
    const row = this.#file.sql('SELECT min_epoch, max_seen_epoch, next_version FROM stack WHERE stack_uid = ?').get(stackUid) as
      | { min_epoch: number; max_seen_epoch: number; next_version: number }
      | undefined
    if (row === undefined) return { fence: initialFence, nextVersion: 1 }
    return { fence: { minEpoch: row.min_epoch, maxSeenEpoch: row.max_seen_epoch }, nextVersion: row.next_version }
  }

  #setStack(stackUid: string, { minEpoch, maxSeenEpoch }: Fence, nextVersion: number): void {
    // max() ensures that the fence never decreases (invariant 3).
    this.#file
      .sql(`INSERT INTO stack (stack_uid, min_epoch, max_seen_epoch, next_version) VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE SET
      min_epoch = max(min_epoch, excluded.min_epoch), max_seen_epoch = max(max_seen_epoch, excluded.max_seen_epoch),
      next_version = max(next_version, excluded.next_version)`)
      .run(stackUid, minEpoch, maxSeenEpoch, nextVersion)
  }

  #lock(stackUid: string): HeldLock | undefined {
    const row = this.#file.sql('SELECT holder, since_ms FROM lock WHERE stack_uid = ?').get(stackUid) as
      | { holder: string; since_ms: number }
      | undefined
    return row && { holder: JSON.parse(row.holder) as LockHolder, sinceMs: row.since_ms }
  }

  #checkUid(stackUid: string): void {
    if (typeof stackUid !== 'string' || stackUid === '' || stackUid.length > 128) {
      throw new StateStoreError('InvalidArgument', `stackUid must be 1 to 128 characters, got ${JSON.stringify(stackUid)?.slice(0, 140)}`)
    }
  }

  #checkSize(bytes: Uint8Array, what: string, maxBytes = this.#limits.maxBytes): void {
    if (bytes.byteLength > maxBytes)
      throw new StateStoreError('TooLarge', `the ${what} has ${bytes.byteLength} bytes, at most ${maxBytes} are allowed`)
  }
}

const userAuthor = (name: string | undefined): string => (name === undefined ? 'user' : `user:${name.slice(0, 253)}`)

const tokenKey = (stackUid: string): string => `token/${stackUid}`

function checkEpoch(epoch: number): void {
  if (!Number.isSafeInteger(epoch) || epoch < 0)
    throw new StateStoreError('InvalidArgument', `epoch must be a whole number >= 0, got ${epoch}`)
}
