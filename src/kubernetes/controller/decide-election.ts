import type { LeaseBody } from '../client/index.ts'
import { type KubeObject, rfc3339Micro } from '../object/index.ts'

/**
 * What a contender knows about the lease. `seenMs` is when the record last changed, by the contender's own monotonic
 * clock: a holder that wrote it did so before that instant. The times inside the record are for people (invariant 2).
 */
export type Observation = { readonly holder: string; readonly record: string; readonly durationMs: number; readonly seenMs: number }

/** Updates what is known with a lease that was read; `nowMs` is the monotonic clock after the answer came. */
export function observeLease(before: Observation | undefined, lease: KubeObject<LeaseBody>, nowMs: number): Observation {
  const { holderIdentity, renewTime, acquireTime, leaseTransitions, leaseDurationSeconds } = lease.spec ?? {}
  const holder = holderIdentity ?? ''
  const durationMs = (leaseDurationSeconds ?? 0) * 1_000
  const record = JSON.stringify([lease.metadata.uid, holder, renewTime, acquireTime, leaseTransitions, durationMs])
  return before?.record === record ? before : { holder, record, durationMs, seenMs: nowMs }
}

export type ElectionVerdict =
  /** Write the lease with ourselves as its holder. */
  | { kind: 'create' }
  | { kind: 'renew' }
  | { kind: 'take-over' }
  /** Somebody else holds it, at least until `untilMs` of our clock. */
  | { kind: 'wait'; untilMs: number }

/** Decides what a contender may do; every write carries the version it read, so that of two takers one gets Conflict. */
export function decideElection(observation: Observation | undefined, identity: string, nowMs: number): ElectionVerdict {
  if (!observation) return { kind: 'create' }
  const { holder, seenMs, durationMs } = observation
  if (holder === identity) return { kind: 'renew' }
  if (holder === '') return { kind: 'take-over' }
  const untilMs = seenMs + durationMs
  return nowMs >= untilMs ? { kind: 'take-over' } : { kind: 'wait', untilMs }
}

/** The record to write. `wallMs` is for people only. */
export function nextLeaseSpec(
  before: LeaseBody['spec'],
  { identity, durationMs, wallMs }: { identity: string; durationMs: number; wallMs: number },
): NonNullable<LeaseBody['spec']> {
  const isRenewal = before?.holderIdentity === identity
  const now = rfc3339Micro(wallMs)
  const transitions = before?.leaseTransitions ?? 0
  return {
    holderIdentity: identity,
    leaseDurationSeconds: Math.max(1, Math.ceil(durationMs / 1_000)),
    acquireTime: isRenewal ? (before?.acquireTime ?? now) : now,
    renewTime: now,
    leaseTransitions: isRenewal || before === undefined ? transitions : transitions + 1,
  }
}
