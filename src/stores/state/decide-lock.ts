import { isSameHolder, type LockHolder } from './lock-holder.ts'

/**
 * Which Runs may still write. Invariant 3: both numbers only increase, except by {@link fenceAfterReset}, and `minEpoch <= maxSeenEpoch + 1`.
 * A Run with an epoch below `minEpoch` is rejected. A user's lock or write raises `minEpoch` above every epoch seen so far, so that
 * a Run that lost its lock cannot overwrite the user's state; the next Run (`maxSeenEpoch + 1` or later) is still accepted.
 */
export type Fence = { readonly minEpoch: number; readonly maxSeenEpoch: number }

/** As in the schema of a Run. */
export const maxEpoch = 2 ** 31 - 1

export const initialFence: Fence = { minEpoch: 0, maxSeenEpoch: 0 }

export const fenceAfterRun = (fence: Fence, epoch: number): Fence => ({
  minEpoch: Math.max(fence.minEpoch, epoch),
  maxSeenEpoch: Math.max(fence.maxSeenEpoch, epoch),
})

export const fenceAfterUser = (fence: Fence): Fence => ({ ...fence, minEpoch: fence.maxSeenEpoch + 1 })

/**
 * Lets the Run after `lastEpoch` write again, and none up to it. The only decision that lowers a fence: an administrator's, for a fence that a Run
 * with a wrong epoch has raised above all that the Stack can reach.
 */
export const fenceAfterReset = (lastEpoch: number): Fence => ({ minEpoch: lastEpoch + 1, maxSeenEpoch: lastEpoch })

/** A restored backup may be older than this many Runs of a Stack: their epochs are not used again. */
const restoreEpochStep = 1_000_000

/**
 * The last epoch that is excluded after a restore: far above every one that was used after the backup was made. Near the highest epoch, half of the
 * remaining ones are left for Runs.
 */
export const epochAfterRestore = (lastEpoch: number): number =>
  lastEpoch + Math.max(0, Math.min(restoreEpochStep, Math.floor((maxEpoch - lastEpoch) / 2)))

export type LockDecision =
  /** `isRepeated`: the same holder has the lock already. `brokenHolder`: the holder whose abandoned lock is broken (invariant 4). */
  | { readonly kind: 'grant'; readonly fence: Fence; readonly isRepeated: boolean; readonly brokenHolder?: LockHolder }
  | { readonly kind: 'held'; readonly holder: LockHolder }
  | { readonly kind: 'stale'; readonly minEpoch: number }

export type LockSituation<Claim> = {
  readonly fence: Fence
  /** Who holds the lock now. */
  readonly held: LockHolder | undefined
  readonly claim: Claim
  /** A holder that is proven to have abandoned the lock. Only its lock is broken: another one may hold it by now (invariant 4). */
  readonly abandonedHolder?: LockHolder | undefined
}

/** Decides whether `claim` gets the lock of a stack. A rejection is a value, never an error. */
export function decideLock({ fence, held, claim, abandonedHolder }: LockSituation<LockHolder>): LockDecision {
  const isRepeated = held !== undefined && isSameHolder(held, claim)
  if (claim.kind === 'Run' && claim.epoch < fence.minEpoch) return { kind: 'stale', minEpoch: fence.minEpoch }
  const next = claim.kind === 'Run' ? fenceAfterRun(fence, claim.epoch) : fenceAfterUser(fence)
  if (held === undefined || isRepeated) return { kind: 'grant', isRepeated, fence: next }
  if (!isAbandoned(held, abandonedHolder)) return { kind: 'held', holder: held }
  return { kind: 'grant', isRepeated, fence: next, brokenHolder: held }
}

const isAbandoned = (held: LockHolder, abandonedHolder: LockHolder | undefined): boolean =>
  abandonedHolder !== undefined && isSameHolder(held, abandonedHolder)

/** Who requests an unlock: a Run by name and epoch, a user by lock id. */
export type UnlockClaim = { kind: 'Run'; runName: string; epoch: number } | { kind: 'User'; id: string }

export type UnlockDecision =
  /** With `fence` the lock of an abandoned holder is broken: the fence excludes this holder from further writes (invariant 4). */
  { readonly kind: 'release'; readonly fence?: Fence } | { readonly kind: 'free' } | { readonly kind: 'held'; readonly holder: LockHolder }

/** An unlock of a free lock is `free`, not an error: the response to a first request may have been lost. */
export function decideUnlock({ fence, held, claim, abandonedHolder }: LockSituation<UnlockClaim>): UnlockDecision {
  if (held === undefined) return { kind: 'free' }
  const isOwn =
    claim.kind === 'Run'
      ? held.kind === 'Run' && held.runName === claim.runName && held.epoch === claim.epoch
      : held.kind === 'User' && held.id === claim.id
  if (isOwn) return { kind: 'release' }
  return isAbandoned(held, abandonedHolder) ? { kind: 'release', fence: fenceAfterUser(fence) } : { kind: 'held', holder: held }
}
