import type { LeaseBody } from '../client/index.ts'
import { type KubeObject, rfc3339Micro } from '../object/index.ts'

/**
 * What a candidate knows about the Lease. `seenMs` is when the record last changed, by the candidate's own monotonic clock: its holder
 * wrote it before that instant. The times inside the record are informational (invariant 2).
 */
export type LeaseObservation = { readonly holder: string; readonly record: string; readonly durationMs: number; readonly seenMs: number }

/** Updates the observation with a Lease that was read; `nowMs` is the monotonic clock after the response arrived. */
export function observeLease(before: LeaseObservation | undefined, lease: KubeObject<LeaseBody>, nowMs: number): LeaseObservation {
  const { holderIdentity, renewTime, acquireTime, leaseTransitions, leaseDurationSeconds } = lease.spec ?? {}
  const holder = holderIdentity ?? ''
  const durationMs = (leaseDurationSeconds ?? 0) * 1_000
  const record = JSON.stringify([lease.metadata.uid, holder, renewTime, acquireTime, leaseTransitions, durationMs])
  return before?.record === record ? before : { holder, record, durationMs, seenMs: nowMs }
}

export type ElectionAction =
  /** Write the Lease with this process as its holder. */
  | { kind: 'create' }
  | { kind: 'renew' }
  | { kind: 'take-over' }
  /** Another process holds it, at least until `untilMs` of our clock. */
  | { kind: 'wait'; untilMs: number }

/** Decides what a candidate may do. Every write carries the version that was read, so that of two concurrent writers one gets Conflict. */
export function decideElection(observation: LeaseObservation | undefined, identity: string, nowMs: number): ElectionAction {
  if (!observation) return { kind: 'create' }
  const { holder, seenMs, durationMs } = observation
  if (holder === identity) return { kind: 'renew' }
  if (holder === '') return { kind: 'take-over' }
  const untilMs = seenMs + durationMs
  return nowMs >= untilMs ? { kind: 'take-over' } : { kind: 'wait', untilMs }
}

/** The record to write. `wallMs` is informational only. */
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
