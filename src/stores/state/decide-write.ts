import { type Fence, fenceAfterRun, fenceAfterUser } from './decide-lock.ts'
import type { LockHolder } from './lock-holder.ts'

/** Who writes: a Run with its epoch, or a user with the id of the lock they claim to hold. */
export type WriteAuthor =
  | {
      readonly kind: 'Run'
      readonly runName: string
      readonly epoch: number
      /** Increases with every write of the Run; a write with a lower one was delayed on the way and does not become current. */
      readonly sequence?: number
    }
  | {
      readonly kind: 'User'
      readonly lockId: string | undefined
      /** As authenticated; undefined with the token of the Stack. */
      readonly name?: string | undefined
    }

/** The newest accepted version of the same kind. */
export type NewestVersion = {
  readonly version: number
  readonly epoch: number
  readonly digest: string
  readonly sequence: number | undefined
  /** Uncompressed bytes. */
  readonly size?: number
}

/**
 * Why a write is stored as an orphan. `Incomplete`: its author reports that the content was cut off when the engine was killed. `RunEnded`: its author
 * has reported the end of the Run before, with the state of that time. `JournalClosed`: entries for an update that is complete. `JournalUnreadable`: a
 * journal that could not be read when a user replaced the state. `UpdateEnded`: what arrived of an update of Pulumi after it had ended or lost its right
 * to write.
 */
export type OrphanReason =
  | 'StaleEpoch'
  | 'NotLockHolder'
  | 'Incomplete'
  | 'RunEnded'
  | 'JournalClosed'
  | 'JournalUnreadable'
  | 'UpdateEnded'

export type StateWriteDecision =
  | { readonly kind: 'accept'; readonly epoch: number; readonly fence: Fence }
  /** Nothing to store: the content is stored already (`unchanged`), or a newer write of this Run arrived before it (`superseded`). */
  | { readonly kind: 'keep'; readonly version: number; readonly reason: 'unchanged' | 'superseded'; readonly fence: Fence }
  | { readonly kind: 'orphan'; readonly epoch: number; readonly reason: OrphanReason }

/** Invariant 3 for writes: what happens to content with `digest`, given the fence, the lock and the newest version. */
export function decideWrite(
  current: { fence: Fence; lock: LockHolder | undefined; newest: NewestVersion | undefined },
  author: WriteAuthor,
  digest: string,
  /** Why the write is not current, even if its author holds the lock. */
  orphanReason?: OrphanReason | undefined,
): StateWriteDecision {
  const { fence, lock, newest } = current
  // A user has no epoch: their version gets the epoch of the last Run, and the lock id fences them.
  const epoch = author.kind === 'Run' ? author.epoch : fence.maxSeenEpoch
  // Never current, and no claim to the right to write: the fence does not change.
  if (orphanReason) {
    const isStored = newest?.digest === digest
    return isStored
      ? { kind: 'keep', version: newest.version, reason: 'unchanged', fence }
      : { kind: 'orphan', epoch, reason: orphanReason }
  }
  if (author.kind === 'Run' && epoch < fence.minEpoch) return { kind: 'orphan', epoch, reason: 'StaleEpoch' }
  if (!isWriteAllowed(lock, author)) return { kind: 'orphan', epoch, reason: 'NotLockHolder' }
  const nextFence = author.kind === 'Run' ? fenceAfterRun(fence, epoch) : fenceAfterUser(fence)
  if (newest?.epoch === epoch) {
    if (newest.digest === digest) return { kind: 'keep', version: newest.version, reason: 'unchanged', fence: nextFence }
    const isDelayed = author.kind === 'Run' && author.sequence !== undefined && author.sequence < (newest.sequence ?? 0)
    if (isDelayed) return { kind: 'keep', version: newest.version, reason: 'superseded', fence: nextFence }
  }
  return { kind: 'accept', epoch, fence: nextFence }
}

function isWriteAllowed(lock: LockHolder | undefined, author: WriteAuthor): boolean {
  // Without a lock the epoch alone decides: the last upload of a Run may arrive after its unlock.
  // A user who names a lock that does not exist any more has lost it.
  if (lock === undefined) return author.kind === 'Run' || author.lockId === undefined
  if (author.kind === 'Run') return lock.kind === 'Run' && lock.runName === author.runName && lock.epoch === author.epoch
  return lock.kind === 'User' && lock.id === author.lockId
}
