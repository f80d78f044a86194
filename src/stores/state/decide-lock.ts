import { isSameHolder, type LockHolder } from './lock-holder.ts'

/**
 * Which Runs may still write. Invariant 3: both numbers only rise, and `minEpoch <= maxSeenEpoch + 1`.
 * A Run below `minEpoch` is refused. A person's lock or write raises `minEpoch` above every Run seen so far, so that a Run
 * which lost its lock cannot write over the person; the next Run (`maxSeenEpoch + 1` or later) is not shut out by it.
 */
export type Fence = { readonly minEpoch: number; readonly maxSeenEpoch: number }

export const openFence: Fence = { minEpoch: 0, maxSeenEpoch: 0 }

export const fenceAfterRun = (fence: Fence, epoch: number): Fence => ({
  minEpoch: Math.max(fence.minEpoch, epoch),
  maxSeenEpoch: Math.max(fence.maxSeenEpoch, epoch),
})

export const fenceAfterPerson = (fence: Fence): Fence => ({ ...fence, minEpoch: fence.maxSeenEpoch + 1 })

export type LockVerdict =
  | { readonly kind: 'grant'; readonly fence: Fence /** The holder had it already: a repeated request. */; readonly again: boolean }
  | { readonly kind: 'held'; readonly holder: LockHolder }
  | { readonly kind: 'stale'; readonly minEpoch: number }

/** Decides whether `claim` gets the lock of a stack that `held` holds now. Being refused is a verdict, never an error. */
export function decideLock(fence: Fence, held: LockHolder | undefined, claim: LockHolder): LockVerdict {
  const again = held !== undefined && isSameHolder(held, claim)
  if (claim.kind === 'Run' && claim.epoch < fence.minEpoch) return { kind: 'stale', minEpoch: fence.minEpoch }
  if (held !== undefined && !again) return { kind: 'held', holder: held }
  return { kind: 'grant', again, fence: claim.kind === 'Run' ? fenceAfterRun(fence, claim.epoch) : fenceAfterPerson(fence) }
}

/** Who asks to unlock: a Run names itself, a person only knows the lock id. */
export type UnlockClaim = { kind: 'Run'; runName: string; epoch: number } | { kind: 'Person'; id: string }

export type UnlockVerdict =
  | { readonly kind: 'release' }
  | { readonly kind: 'free' }
  | { readonly kind: 'held'; readonly holder: LockHolder }

/** An unlock of a free lock is `free`, not an error: the answer to the first request may have been lost on the way. */
export function decideUnlock(held: LockHolder | undefined, claim: UnlockClaim): UnlockVerdict {
  if (held === undefined) return { kind: 'free' }
  const isOwn =
    claim.kind === 'Run'
      ? held.kind === 'Run' && held.runName === claim.runName && held.epoch === claim.epoch
      : held.kind === 'Person' && held.id === claim.id
  return isOwn ? { kind: 'release' } : { kind: 'held', holder: held }
}
