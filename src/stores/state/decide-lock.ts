import { isSameHolder, type LockHolder } from './lock-holder.ts'

/**
 * Which Runs may still write. Invariant 3: both numbers only increase, and `minEpoch <= maxSeenEpoch + 1`.
 * A Run with an epoch below `minEpoch` is rejected. A user's lock or write raises `minEpoch` above every epoch seen so far, so that
 * a Run that lost its lock cannot overwrite the user's state; the next Run (`maxSeenEpoch + 1` or later) is still accepted.
 */
export type Fence = { readonly minEpoch: number; readonly maxSeenEpoch: number }

export const initialFence: Fence = { minEpoch: 0, maxSeenEpoch: 0 }

export const fenceAfterRun = (fence: Fence, epoch: number): Fence => ({
  minEpoch: Math.max(fence.minEpoch, epoch),
  maxSeenEpoch: Math.max(fence.maxSeenEpoch, epoch),
})

export const fenceAfterUser = (fence: Fence): Fence => ({ ...fence, minEpoch: fence.maxSeenEpoch + 1 })

export type LockDecision =
  /** `isRepeated`: the same holder has the lock already. */
  | { readonly kind: 'grant'; readonly fence: Fence; readonly isRepeated: boolean }
  | { readonly kind: 'held'; readonly holder: LockHolder }
  | { readonly kind: 'stale'; readonly minEpoch: number }

/** Decides whether `claim` gets the lock of a stack that `held` holds now. A rejection is a value, never an error. */
export function decideLock(fence: Fence, held: LockHolder | undefined, claim: LockHolder): LockDecision {
  const isRepeated = held !== undefined && isSameHolder(held, claim)
  if (claim.kind === 'Run' && claim.epoch < fence.minEpoch) return { kind: 'stale', minEpoch: fence.minEpoch }
  if (held !== undefined && !isRepeated) return { kind: 'held', holder: held }
  return { kind: 'grant', isRepeated, fence: claim.kind === 'Run' ? fenceAfterRun(fence, claim.epoch) : fenceAfterUser(fence) }
}

/** Who requests an unlock: a Run by name and epoch, a user by lock id. */
export type UnlockClaim = { kind: 'Run'; runName: string; epoch: number } | { kind: 'User'; id: string }

export type UnlockDecision =
  | { readonly kind: 'release' }
  | { readonly kind: 'free' }
  | { readonly kind: 'held'; readonly holder: LockHolder }

/** An unlock of a free lock is `free`, not an error: the response to a first request may have been lost. */
export function decideUnlock(held: LockHolder | undefined, claim: UnlockClaim): UnlockDecision {
  if (held === undefined) return { kind: 'free' }
  const isOwn =
    claim.kind === 'Run'
      ? held.kind === 'Run' && held.runName === claim.runName && held.epoch === claim.epoch
      : held.kind === 'User' && held.id === claim.id
  return isOwn ? { kind: 'release' } : { kind: 'held', holder: held }
}
