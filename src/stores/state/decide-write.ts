import { type Fence, fenceAfterPerson, fenceAfterRun } from './decide-lock.ts'
import type { LockHolder } from './lock-holder.ts'

/** Who writes: a Run with its epoch, or a person with the id of the lock they think they hold. */
export type WriteAuthor =
  | {
      readonly kind: 'Run'
      readonly runName: string
      readonly epoch: number
      /** Rises with every write of the Run; a lower one that comes later was late on the way and is not made current. */
      readonly sequence?: number
    }
  | { readonly kind: 'Person'; readonly lockId: string | undefined }

/** The newest accepted version of the same kind. `digest` is compared as text. */
export type NewestVersion = {
  readonly version: number
  readonly epoch: number
  readonly digest: string
  readonly sequence: number | undefined
}

/** Why a write is kept aside. `Torn`: it says itself that it is no complete content, cut off with the engine that wrote it. */
export type OrphanReason = 'StaleEpoch' | 'NotLockHolder' | 'Torn'

export type WriteVerdict =
  | { readonly kind: 'accept'; readonly epoch: number; readonly fence: Fence }
  /** Nothing to store: the content is there already (`same`), or a newer write of this Run overtook it (`superseded`). */
  | { readonly kind: 'keep'; readonly version: number; readonly why: 'same' | 'superseded'; readonly fence: Fence }
  | { readonly kind: 'orphan'; readonly epoch: number; readonly reason: OrphanReason }

/** Invariant 3, for writes: what happens to content with `digest`, given the fence, the lock and the newest version. */
export function decideWrite(
  current: { fence: Fence; lock: LockHolder | undefined; newest: NewestVersion | undefined },
  author: WriteAuthor,
  digest: string,
  { isTorn = false } = {},
): WriteVerdict {
  const { fence, lock, newest } = current
  // A person has no epoch: their version is filed under the last Run's, and the lock id is what fences them.
  const epoch = author.kind === 'Run' ? author.epoch : fence.maxSeenEpoch
  // Never current, and no word about who may write: the fence stays as it is.
  if (isTorn) return { kind: 'orphan', epoch, reason: 'Torn' }
  if (author.kind === 'Run' && epoch < fence.minEpoch) return { kind: 'orphan', epoch, reason: 'StaleEpoch' }
  if (!mayWriteUnder(lock, author)) return { kind: 'orphan', epoch, reason: 'NotLockHolder' }
  const nextFence = author.kind === 'Run' ? fenceAfterRun(fence, epoch) : fenceAfterPerson(fence)
  if (newest?.epoch === epoch) {
    if (newest.digest === digest) return { kind: 'keep', version: newest.version, why: 'same', fence: nextFence }
    const isLate = author.kind === 'Run' && author.sequence !== undefined && author.sequence < (newest.sequence ?? 0)
    if (isLate) return { kind: 'keep', version: newest.version, why: 'superseded', fence: nextFence }
  }
  return { kind: 'accept', epoch, fence: nextFence }
}

function mayWriteUnder(lock: LockHolder | undefined, author: WriteAuthor): boolean {
  // Without a lock the epoch alone decides: a Run's last upload may come after its unlock.
  // A person who names a lock that is no longer there has lost it to someone.
  if (lock === undefined) return author.kind === 'Run' || author.lockId === undefined
  if (author.kind === 'Run') return lock.kind === 'Run' && lock.runName === author.runName && lock.epoch === author.epoch
  return lock.kind === 'Person' && lock.id === author.lockId
}
