/**
 * Whether a process may take the lock of a resource, as a pure decision. The lock is a Lease that names its holder and is never renewed: it is valid while the
 * holder's own Lease is, so that ten thousand locks cost as many renewals as one.
 */

/** What is known of the process that holds a lock. */
export type HolderState =
  /** It stopped and released its own Lease. */
  | 'released'
  /** Its own Lease was not renewed for its whole duration, by our monotonic clock since we saw the last renewal (invariant 2). */
  | 'expired'
  | 'alive'

export type LockDecision =
  | 'create'
  /** It names this process, which writes it once more after it was without a Lease: another one may have adopted it. */
  | 'hold'
  /** Its holder is proven dead. Written at the version that was read: of two that adopt it, one gets Conflict. */
  | 'adopt'
  | 'wait'

export function decideLock(
  lock: { readonly holder: string } | undefined,
  identity: string,
  stateOf: (holder: string) => HolderState,
): LockDecision {
  if (!lock) return 'create'
  if (lock.holder === identity) return 'hold'
  if (lock.holder === '') return 'adopt'
  return stateOf(lock.holder) === 'alive' ? 'wait' : 'adopt'
}
