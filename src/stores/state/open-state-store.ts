import type { UnlockClaim } from './decide-lock.ts'
import { checkStateKey, StackTokens } from './encryption.ts'
import { LazyThread } from './lazy-thread.ts'
import type { LockHolder, RunHolder } from './lock-holder.ts'
import {
  defaultStateLimits,
  type HeldLock,
  type LockResult,
  type OrphanInfo,
  type StateLimits,
  type StateStats,
  type StoredPlan,
  type StoredVersion,
  type UnlockResult,
  type VersionInfo,
  type VersionKind,
  type WriteResult,
} from './state-database.ts'
import { StateStoreError } from './state-store-error.ts'

export type StateStoreOptions = {
  /** Holds `state.db`; made with mode 0700 if absent. One process at a time. */
  directory: string
  /** 32 bytes. Losing it loses every state. */
  key: Uint8Array
  limits?: Partial<StateLimits>
  /** Milliseconds since the epoch, only for `createdMs` and `sinceMs`: nothing is decided by it. Default `Date.now`. */
  nowMs?: () => number
  /** The thread and the open file are let go after so long without a call, and come back with the next one. Default 30,000. */
  restAfterMs?: number
}

/** Says whether the Run that holds a lock has ended or its worker is proven gone. Rejecting counts as "not known", and nothing is broken. */
export type IsHolderGone = (holder: RunHolder) => Promise<boolean>

/**
 * State versions, plans and locks of stacks, by the stack's UID. An answer means: on disk (invariant 5).
 * Every method rejects with {@link StateStoreError}; refusals are results.
 */
export interface StateStore {
  readonly limits: StateLimits
  /**
   * Stores a version. Content equal to the newest version of the same epoch makes no new version, so repeating a write is safe.
   * A write from an older epoch, or past somebody's lock, is never current and is kept as an orphan (invariant 3); so is what is torn.
   */
  writeVersion(
    request: { stackUid: string; bytes: Uint8Array; kind?: VersionKind; isTorn?: boolean } & (
      | { runName: string; epoch: number; sequence?: number }
      | { person: { lockId: string | undefined } }
    ),
  ): Promise<WriteResult>
  /** The newest accepted version of `kind` (default `terraform`), or any version or orphan by its number. */
  readVersion(request: { stackUid: string; version?: number; kind?: VersionKind }): Promise<(StoredVersion & { bytes: Buffer }) | undefined>
  /** Newest first. */
  versions(stackUid: string): Promise<VersionInfo[]>
  /** Newest first. */
  orphans(stackUid: string): Promise<OrphanInfo[]>
  /**
   * Takes the stack's lock; the same holder may ask again. A granted lock raises the fence, durably: from then on older epochs are refused.
   * A lock held by another Run is taken over only if `isHolderGone` says so; a person's lock never is (invariant 4).
   */
  lock(request: { stackUid: string; holder: LockHolder }, isHolderGone: IsHolderGone): Promise<LockResult>
  /** Gives the lock back; `free` when nobody held it. With `isHolderGone`, a lock of a Run that is gone may be released by anyone. */
  unlock(request: { stackUid: string; holder: LockHolder | UnlockClaim }, isHolderGone?: IsHolderGone): Promise<UnlockResult>
  currentLock(stackUid: string): Promise<HeldLock | undefined>
  /** Keeps a plan file under its digest; the same digest replaces. */
  putPlan(request: { stackUid: string; digest: string; runName: string; bytes: Uint8Array }): Promise<void>
  getPlan(stackUid: string, digest: string): Promise<(StoredPlan & { bytes: Buffer }) | undefined>
  /** Forgets everything about a stack, its fence too: only when its UID can never come back. */
  deleteStack(stackUid: string): Promise<void>
  /** The stack's access token for people and tools. It does not expire and needs no storage. */
  stackToken(stackUid: string): string
  /** Constant time. */
  checkStackToken(stackUid: string, token: string): boolean
  stats(): Promise<StateStats>
  /** Answers what was asked before, then closes the file. */
  close(): Promise<void>
}

/**
 * Opens the state store of a directory.
 *
 * SQLite runs in a thread of its own. Measured with 12 engines that write 100 KB every 100 ms, 2 noisy cores, event loop delay: in a thread
 * p99 4.2 to 5.3 ms, max 6 to 8 ms, whatever the disk did (a write took 4 ms, at worst 150); on the main thread p99 9 ms, max 16 ms on a quiet
 * disk, and every slow fsync on top. The API server lives in that loop.
 * @throws {StateStoreError} `StateKeyMismatch`, `DataTooNew`, `InUse`, `Corrupt`, `DiskFull`, `InvalidArgument`, `Unavailable`.
 */
export async function openStateStore(options: StateStoreOptions): Promise<StateStore> {
  checkStateKey(options.key)
  const limits = { ...defaultStateLimits, ...options.limits }
  const threadOptions = { directory: options.directory, key: Uint8Array.from(options.key), limits }
  const thread = await LazyThread.start(threadOptions, options.restAfterMs ?? 30_000)
  return new ThreadedStateStore(thread, new StackTokens(options.key), limits, options.nowMs ?? Date.now)
}

class ThreadedStateStore implements StateStore {
  readonly limits: StateLimits
  readonly #thread: LazyThread
  readonly #tokens: StackTokens
  readonly #nowMs: () => number

  constructor(thread: LazyThread, tokens: StackTokens, limits: StateLimits, nowMs: () => number) {
    this.#thread = thread
    this.#tokens = tokens
    this.limits = limits
    this.#nowMs = nowMs
  }

  async writeVersion(request: Parameters<StateStore['writeVersion']>[0]): Promise<WriteResult> {
    const { stackUid, bytes, kind = 'terraform', isTorn } = request
    this.#checkSize(bytes, 'state')
    const author =
      'person' in request
        ? { kind: 'Person' as const, lockId: request.person.lockId }
        : { kind: 'Run' as const, runName: request.runName, epoch: request.epoch, sequence: request.sequence }
    return await this.#thread.send(bytes, copy => ['writeVersion', [{ stackUid, author, kind, bytes: copy, isTorn }, this.#nowMs()]])
  }

  async readVersion(request: { stackUid: string; version?: number; kind?: VersionKind }) {
    return withBuffer(await this.#thread.call('readVersion', { ...request, kind: request.kind ?? 'terraform' }))
  }

  versions(stackUid: string): Promise<VersionInfo[]> {
    return this.#thread.call('versions', stackUid)
  }

  orphans(stackUid: string): Promise<OrphanInfo[]> {
    return this.#thread.call('orphans', stackUid)
  }

  async lock({ stackUid, holder }: { stackUid: string; holder: LockHolder }, isHolderGone: IsHolderGone): Promise<LockResult> {
    let breaking: LockHolder | undefined
    for (;;) {
      const result: LockResult = await this.#thread.call('lock', { stackUid, holder, breaking }, this.#nowMs())
      if (result.kind === 'granted' || result.reason !== 'Held' || result.holder.kind !== 'Run') return result
      // Asked once per holder: only a change of holder can change the answer.
      if (breaking !== undefined && JSON.stringify(breaking) === JSON.stringify(result.holder)) return result
      if (!(await knownGone(isHolderGone, result.holder))) return result
      breaking = result.holder
    }
  }

  async unlock(
    { stackUid, holder }: { stackUid: string; holder: LockHolder | UnlockClaim },
    isHolderGone?: IsHolderGone,
  ): Promise<UnlockResult> {
    const result = await this.#thread.call('unlock', { stackUid, holder })
    if (result.kind !== 'refused' || result.holder.kind !== 'Run' || !(await knownGone(isHolderGone, result.holder))) return result
    return await this.#thread.call('unlock', { stackUid, holder, breaking: result.holder })
  }

  currentLock(stackUid: string): Promise<HeldLock | undefined> {
    return this.#thread.call('currentLock', stackUid)
  }

  async putPlan({
    stackUid,
    digest,
    runName,
    bytes,
  }: {
    stackUid: string
    digest: string
    runName: string
    bytes: Uint8Array
  }): Promise<void> {
    this.#checkSize(bytes, 'plan')
    await this.#thread.send(bytes, copy => ['putPlan', [{ stackUid, digest, runName, bytes: copy }, this.#nowMs()]])
  }

  async getPlan(stackUid: string, digest: string) {
    return withBuffer(await this.#thread.call('getPlan', stackUid, digest))
  }

  deleteStack(stackUid: string): Promise<void> {
    return this.#thread.call('deleteStack', stackUid)
  }

  stackToken(stackUid: string): string {
    return this.#tokens.tokenOf(stackUid)
  }

  checkStackToken(stackUid: string, token: string): boolean {
    return this.#tokens.check(stackUid, token)
  }

  stats(): Promise<StateStats> {
    return this.#thread.call('stats')
  }

  close(): Promise<void> {
    return this.#thread.close()
  }

  // Before the copy to the thread, not after it.
  #checkSize(bytes: Uint8Array, what: string): void {
    const { maxBytes } = this.limits
    if (bytes.byteLength > maxBytes)
      throw new StateStoreError('TooLarge', `the ${what} has ${bytes.byteLength} bytes, at most ${maxBytes} are allowed`)
  }
}

/** Invariant 4: a lock is broken on proof; a question that could not be answered is no proof. */
async function knownGone(isHolderGone: IsHolderGone | undefined, holder: RunHolder): Promise<boolean> {
  if (isHolderGone === undefined) return false
  return await isHolderGone(holder).catch(() => false)
}

function withBuffer<T extends { bytes: Uint8Array }>(value: T | undefined): (T & { bytes: Buffer }) | undefined {
  return value && { ...value, bytes: Buffer.from(value.bytes.buffer, value.bytes.byteOffset, value.bytes.byteLength) }
}
