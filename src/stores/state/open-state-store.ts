import { randomBytes } from 'node:crypto'
import type { Fence, UnlockClaim } from './decide-lock.ts'
import type { OrphanReason } from './decide-write.ts'
import { checkStateKey, StackSecrets, StackTokens, stateKeyId } from './encryption.ts'
import { LazyThread } from './lazy-thread.ts'
import { describeHolder, type LockHolder, type RunHolder } from './lock-holder.ts'
import type { StateFacts } from './state-facts.ts'
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
  type UnlockResult,
  type VersionInfo,
  type VersionKind,
} from './state-types.ts'

export type StateStoreOptions = {
  /** Contains `state.db`; created with mode 0700 if absent. One process at a time. */
  directory: string
  /** 32 bytes. Without it no stored state can be read. */
  key: Uint8Array
  limits?: Partial<StateLimits>
  /** Milliseconds since the epoch, for `createdMs` and `sinceMs` only: no decision depends on it. Default `Date.now`. */
  nowMs?: () => number
  /** Time without a call after which the thread ends and the file is closed; the next call starts them again. Default 30,000. */
  idleTimeoutMs?: number
}

/** Resolves to true when the Run that holds a lock has ended or its worker is proven lost. A rejection counts as unknown: the lock is not broken. */
export type IsLockAbandoned = (holder: RunHolder) => Promise<boolean>

/**
 * State versions, plans and locks of stacks, by the stack's UID. A resolved write is on disk (invariant 5).
 * Every method rejects with {@link StateStoreError}; a rejected write or lock is a result.
 */
export type TokenRotation = {
  readonly token: string
  readonly previousUntilMs: number
  readonly endedUntilMs?: number
}

export interface StateStore {
  readonly limits: StateLimits
  /**
   * Stores a version. Content equal to the newest version of the same epoch creates no version, so a write can be retried.
   * A write from an older epoch, without the lock, or of incomplete content never becomes current: it is stored as an orphan (invariant 3).
   */
  writeVersion(
    request: {
      stackUid: string
      bytes: Uint8Array
      kind?: VersionKind
      orphanReason?: OrphanReason | undefined
      update?: number | undefined
      expectedVersion?: number | undefined
    } & ({ runName: string; epoch: number; sequence?: number } | { user: { lockId: string | undefined; name?: string | undefined } }),
  ): Promise<StateWriteResult>
  /** The newest accepted version of `kind` (default `terraform`), or any version or orphan by its number. */
  readVersion(request: { stackUid: string; version?: number; kind?: VersionKind }): Promise<(StoredVersion & { bytes: Buffer }) | undefined>
  /** Number of the newest accepted version of any kind, or of the open journal; 0 without one. */
  newestVersion(stackUid: string): Promise<number>
  /** The newest state of Pulumi without its content; undefined without one. */
  newestPulumi(stackUid: string): Promise<NewestPulumi | undefined>
  /**
   * Stores entries of the journal of an update, all or none of them, or only the results of operations (`full`); the same entries may be sent again. Reads of kind `pulumi` have them from then on.
   * Rejected and stored as an orphan like a version (invariant 3). @throws {StateStoreError} JournalConflict, JournalUnreadable, TooLarge
   */
  appendJournal(request: AppendRequest): Promise<AppendResult>
  /** Makes a version of what the journal of an update results in. The same update may be completed again. @throws {StateStoreError} JournalUnreadable */
  completeJournal(request: CompleteRequest): Promise<CompleteResult>
  /** Undefined without a state of Pulumi. */
  pulumiFacts(stackUid: string): Promise<PulumiFacts | undefined>
  /** Number of journals of updates that have not completed. The file is not read for it. */
  readonly openJournals: number
  /** Encrypts secrets of the state or configuration of a Stack; only for this Stack they are decrypted. */
  encryptSecrets(stackUid: string, values: readonly Uint8Array[]): Buffer[]
  /** @throws {StateStoreError} DecryptionFailed */
  decryptSecrets(stackUid: string, values: readonly Uint8Array[]): Buffer[]
  /** Makes the newest version, or an empty one, current for Runs that require `expectedVersion`: as a write of the user. */
  acceptState(request: AcceptRequest): Promise<StateWriteResult>
  /** Newest first. */
  versions(stackUid: string): Promise<VersionInfo[]>
  /** Newest first. */
  orphans(stackUid: string): Promise<OrphanInfo[]>
  /**
   * Acquires the stack's lock; idempotent for the same holder. A granted lock raises the fence durably: from then on older epochs are rejected.
   * The lock of another Run is broken only if `isLockAbandoned` resolves to true; a user's lock never is (invariant 4).
   */
  lock(request: { stackUid: string; holder: LockHolder }, isLockAbandoned: IsLockAbandoned): Promise<LockResult>
  /** Releases the lock; `free` when it was not held. With `isLockAbandoned`, anyone may release the lock that a Run has abandoned. */
  unlock(request: { stackUid: string; holder: LockHolder | UnlockClaim }, isLockAbandoned?: IsLockAbandoned): Promise<UnlockResult>
  currentLock(stackUid: string): Promise<HeldLock | undefined>
  /** False if no user or tool holds the lock and no state of Pulumi is stored, as far as that is known without reading the file: a Run that requires no state may start. */
  mayHaveFacts(stackUid: string): boolean
  facts(stackUid: string): Promise<StateFacts>
  /** Stores a plan file by its digest, once: approval is of exactly these bytes. The same bytes may be sent again. @throws {StateStoreError} PlanExists */
  putPlan(request: PlanRequest): Promise<void>
  getPlan(stackUid: string, digest: string): Promise<(StoredPlan & { bytes: Buffer }) | undefined>
  /** Stores what the plan of a Run would change, once. The same bytes may be sent again. @throws {StateStoreError} PlanExists */
  putDiff(request: DiffRequest): Promise<void>
  getDiff(stackUid: string, runName: string): Promise<Buffer | undefined>
  /** Keeps the source and inputs that a Run is about to apply, for the destruction; only the newest. */
  putConfiguration(request: ConfigurationRequest): Promise<ConfigurationResult>
  getConfiguration(stackUid: string): Promise<Buffer | undefined>
  /** Deletes all data of a stack including its fence: only for a UID that is never used again. */
  deleteStack(stackUid: string): Promise<void>
  fence(stackUid: string): Promise<Fence>
  /** Lowers or raises the fence, so that the Run after `lastEpoch` can write and none up to it. Rejected while a Run holds the lock, without `force`. */
  resetFence(request: FenceReset): Promise<FenceResetResult>
  /** The stack's access token for users and tools. It does not expire and is not stored. */
  stackToken(stackUid: string): Promise<string>
  /**
   * Replaces the token; the one before stays valid for `graceMs`, and any earlier one becomes invalid. `endedUntilMs` is set if that one was
   * still valid: until when.
   */
  rotateStackToken(request: { stackUid: string; graceMs: number }): Promise<TokenRotation>
  /** Constant time. */
  checkStackToken(stackUid: string, token: string): Promise<boolean>
  stats(): Promise<StateStats>
  /** Copies the database to `path` while writes continue; the copy has everything that was acknowledged before. */
  backUp(path: string): Promise<void>
  /** Identifies the key, and reveals nothing of it. */
  readonly keyId: string
  /** Completes the pending calls, then closes the file. */
  close(): Promise<void>
}

/**
 * Opens the state store of a directory.
 *
 * SQLite runs in a thread of its own. Event loop delay (`npm run bench -- state`) with 12 engines that write 100 KB every 100 ms on 2 noisy cores: in a thread
 * p99 4.2 to 5.3 ms, max 6 to 8 ms, independent of the disk (a write took 4 ms, at worst 150); on the main thread p99 9 ms, max 16 ms on an
 * idle disk, plus every slow fsync. The API server runs in that event loop.
 * @throws {StateStoreError} `StateKeyMismatch`, `DataTooNew`, `InUse`, `Corrupt`, `DiskFull`, `InvalidArgument`, `Unavailable`.
 */
export async function openStateStore(options: StateStoreOptions): Promise<StateStore> {
  checkStateKey(options.key)
  const limits = { ...defaultStateLimits, ...options.limits }
  const threadOptions = { directory: options.directory, key: Uint8Array.from(options.key), limits }
  const thread = await LazyThread.start(threadOptions, options.idleTimeoutMs ?? 30_000)
  return new ThreadedStateStore(thread, options.key, limits, options.nowMs ?? Date.now)
}

class ThreadedStateStore implements StateStore {
  readonly limits: StateLimits
  readonly keyId: string
  readonly #thread: LazyThread
  readonly #tokens: StackTokens
  readonly #secrets: StackSecrets
  readonly #nowMs: () => number

  constructor(thread: LazyThread, key: Uint8Array, limits: StateLimits, nowMs: () => number) {
    this.#thread = thread
    this.#tokens = new StackTokens(key)
    this.#secrets = new StackSecrets(key)
    this.keyId = stateKeyId(key)
    this.limits = limits
    this.#nowMs = nowMs
  }

  async writeVersion(request: Parameters<StateStore['writeVersion']>[0]): Promise<StateWriteResult> {
    const { stackUid, bytes, kind = 'terraform', orphanReason, update, expectedVersion } = request
    this.#checkSize(bytes, 'state')
    const author =
      'user' in request
        ? { kind: 'User' as const, ...request.user }
        : { kind: 'Run' as const, runName: request.runName, epoch: request.epoch, sequence: request.sequence }
    return await this.#thread.send(bytes, copy => [
      'writeVersion',
      [{ stackUid, author, kind, bytes: copy, orphanReason, update, expectedVersion }, this.#nowMs()],
    ])
  }

  async readVersion(request: { stackUid: string; version?: number; kind?: VersionKind }) {
    return withBuffer(await this.#thread.call('readVersion', { ...request, kind: request.kind ?? 'terraform' }))
  }

  newestVersion(stackUid: string): Promise<number> {
    return this.#thread.call('newestVersion', stackUid)
  }

  newestPulumi(stackUid: string): Promise<NewestPulumi | undefined> {
    return this.#thread.call('newestPulumi', stackUid)
  }

  async appendJournal(request: AppendRequest): Promise<AppendResult> {
    this.#checkSize(request.bytes, 'batch of journal entries', this.limits.journalBatchBytes)
    return await this.#thread.send(request.bytes, copy => ['appendJournal', [{ ...request, bytes: copy }, this.#nowMs()]])
  }

  completeJournal(request: CompleteRequest): Promise<CompleteResult> {
    return this.#thread.call('completeJournal', request, this.#nowMs())
  }

  pulumiFacts(stackUid: string): Promise<PulumiFacts | undefined> {
    return this.#thread.call('pulumiFacts', stackUid)
  }

  get openJournals(): number {
    return this.#thread.openJournals
  }

  encryptSecrets(stackUid: string, values: readonly Uint8Array[]): Buffer[] {
    return values.map(value => this.#secrets.encrypt(stackUid, value))
  }

  decryptSecrets(stackUid: string, values: readonly Uint8Array[]): Buffer[] {
    return values.map((value, index) => this.#secrets.decrypt(stackUid, value, index))
  }

  acceptState(request: AcceptRequest): Promise<StateWriteResult> {
    return this.#thread.call('acceptState', request, this.#nowMs())
  }

  versions(stackUid: string): Promise<VersionInfo[]> {
    return this.#thread.call('versions', stackUid)
  }

  orphans(stackUid: string): Promise<OrphanInfo[]> {
    return this.#thread.call('orphans', stackUid)
  }

  async lock({ stackUid, holder }: { stackUid: string; holder: LockHolder }, isLockAbandoned: IsLockAbandoned): Promise<LockResult> {
    let abandonedHolder: LockHolder | undefined
    for (;;) {
      const result: LockResult = await this.#thread.call('lock', { stackUid, holder, abandonedHolder }, this.#nowMs())
      if (result.kind === 'granted' || result.reason !== 'Held' || result.holder.kind !== 'Run') return result
      // Checked once per holder: only another holder can change the result.
      if (abandonedHolder !== undefined && JSON.stringify(abandonedHolder) === JSON.stringify(result.holder)) return result
      if (!(await isProvenAbandoned(isLockAbandoned, result.holder))) return result
      abandonedHolder = result.holder
    }
  }

  async unlock(
    { stackUid, holder }: { stackUid: string; holder: LockHolder | UnlockClaim },
    isLockAbandoned?: IsLockAbandoned,
  ): Promise<UnlockResult> {
    const result = await this.#thread.call('unlock', { stackUid, holder })
    if (result.kind !== 'rejected' || result.holder.kind !== 'Run' || !(await isProvenAbandoned(isLockAbandoned, result.holder)))
      return result
    return await this.#thread.call('unlock', { stackUid, holder, abandonedHolder: result.holder })
  }

  currentLock(stackUid: string): Promise<HeldLock | undefined> {
    return this.#thread.call('currentLock', stackUid)
  }

  mayHaveFacts(stackUid: string): boolean {
    this.#thread.keepRunning()
    return this.#thread.running?.stacks.mayHave(stackUid) ?? true
  }

  facts(stackUid: string): Promise<StateFacts> {
    return this.#thread.withThread(async thread => {
      const afterRead = thread.stacks.beforeRead(stackUid)
      const { newest, lock, pulumi } = await thread.call('facts', stackUid)
      const userLock = lock?.holder.kind === 'User' ? { holder: describeHolder(lock.holder), sinceMs: lock.sinceMs } : undefined
      afterRead(userLock !== undefined || pulumi !== undefined)
      return { newest, ...(pulumi && { pulumi }), ...(userLock && { userLock }) }
    })
  }

  async putPlan({ stackUid, digest, runName, bytes }: PlanRequest): Promise<void> {
    this.#checkSize(bytes, 'plan')
    await this.#thread.send(bytes, copy => ['putPlan', [{ stackUid, digest, runName, bytes: copy }, this.#nowMs()]])
  }

  async getPlan(stackUid: string, digest: string) {
    return withBuffer(await this.#thread.call('getPlan', stackUid, digest))
  }

  async putDiff({ stackUid, runName, bytes }: DiffRequest): Promise<void> {
    this.#checkSize(bytes, 'diff')
    await this.#thread.send(bytes, copy => ['putDiff', [{ stackUid, runName, bytes: copy }, this.#nowMs()]])
  }

  async getDiff(stackUid: string, runName: string): Promise<Buffer | undefined> {
    const bytes: Uint8Array | undefined = await this.#thread.call('getDiff', stackUid, runName)
    return bytes && Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  }

  async putConfiguration({ stackUid, epoch, bytes }: ConfigurationRequest): Promise<ConfigurationResult> {
    this.#checkSize(bytes, 'configuration')
    return await this.#thread.send(bytes, copy => ['putConfiguration', [{ stackUid, epoch, bytes: copy }, this.#nowMs()]])
  }

  async getConfiguration(stackUid: string): Promise<Buffer | undefined> {
    const bytes: Uint8Array | undefined = await this.#thread.call('getConfiguration', stackUid)
    return bytes && Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  }

  deleteStack(stackUid: string): Promise<void> {
    return this.#thread.withThread(async thread => {
      await thread.call('deleteStack', stackUid)
      thread.stacks.delete(stackUid)
    })
  }

  fence(stackUid: string): Promise<Fence> {
    return this.#thread.call('fence', stackUid)
  }

  resetFence(request: FenceReset): Promise<FenceResetResult> {
    return this.#thread.call('resetFence', request)
  }

  async stackToken(stackUid: string): Promise<string> {
    return this.#tokens.tokenOf(stackUid, (await this.#generation(stackUid)).id)
  }

  async rotateStackToken({ stackUid, graceMs }: { stackUid: string; graceMs: number }) {
    const { id: previousId, previousUntilMs: endedUntilMs } = await this.#generation(stackUid)
    const nowMs = this.#nowMs()
    const generation = { id: randomBytes(12).toString('hex'), previousId, previousUntilMs: nowMs + graceMs }
    await this.#thread.call('setTokenGeneration', stackUid, generation)
    const token = this.#tokens.tokenOf(stackUid, generation.id)
    return { token, previousUntilMs: generation.previousUntilMs, ...(endedUntilMs > nowMs && { endedUntilMs }) }
  }

  async checkStackToken(stackUid: string, token: string): Promise<boolean> {
    const { id, previousId, previousUntilMs } = await this.#generation(stackUid)
    const isCurrent = this.#tokens.check(stackUid, token, id)
    const isPrevious = this.#tokens.check(stackUid, token, previousId)
    return isCurrent || (isPrevious && this.#nowMs() < previousUntilMs)
  }

  async #generation(stackUid: string): Promise<TokenGeneration> {
    return (await this.#thread.call('tokenGeneration', stackUid)) ?? { id: '', previousId: '', previousUntilMs: 0 }
  }

  stats(): Promise<StateStats> {
    return this.#thread.call('stats')
  }

  backUp(path: string): Promise<void> {
    return this.#thread.call('backUp', path)
  }

  close(): Promise<void> {
    return this.#thread.close()
  }

  /** Checked before the copy to the thread. */
  #checkSize(bytes: Uint8Array, what: string, maxBytes = this.limits.maxBytes): void {
    if (bytes.byteLength > maxBytes)
      throw new StateStoreError('TooLarge', `the ${what} has ${bytes.byteLength} bytes, at most ${maxBytes} are allowed`)
  }
}

/** Invariant 4: a lock is broken only on proof; a failed check is no proof. */
async function isProvenAbandoned(isLockAbandoned: IsLockAbandoned | undefined, holder: RunHolder): Promise<boolean> {
  if (isLockAbandoned === undefined) return false
  return await isLockAbandoned(holder).catch(() => false)
}

function withBuffer<T extends { bytes: Uint8Array }>(value: T | undefined): (T & { bytes: Buffer }) | undefined {
  return value && { ...value, bytes: Buffer.from(value.bytes.buffer, value.bytes.byteOffset, value.bytes.byteLength) }
}
