import { laterRevision, readRevision } from '../../kubernetes/util/index.ts'

/**
 * How long a claim stays without its object, by the clock of the partition: longer than an object may be created after a change of its claim (30 s,
 * `createWithinMs` of the gateway).
 */
export const defaultRemoveAfterMs = 60_000

const minWaitMs = 1_000

export type ClaimState = {
  /** Resource version of the claim: a renewal raises it. */
  readonly version: number
  /** Whether this partition has the object. */
  readonly isHere: boolean
  /** Of this partition, milliseconds since the epoch. */
  readonly nowMs: number
  /** The resource version at which this partition did not have the object; undefined: not read yet. */
  readonly missingAt?: number | undefined
  /** Claims up to this version may be of objects that this data directory has never had. Default 0: it has had all. */
  readonly keepUpTo?: number
  readonly removeAfterMs?: number
}

export type ClaimDecision =
  | { readonly kind: 'keep' }
  | { readonly kind: 'wait'; readonly ms: number }
  /** Read whether the object is missing, and at which version of the partition. */
  | { readonly kind: 'read' }
  /** The claim, if it still has this version. */
  | { readonly kind: 'remove' }

/**
 * Whether a claim of this partition is removed. An object is created at most 30 s after the version of its claim, by the versions of its partition,
 * which only rise. So it is gone for certain when it is missing at a version later than that; and a claim of that same version is all that a
 * creation could rely on. A claim that was renewed meanwhile has another version, and is not removed. One from before this data directory was that of the
 * partition says nothing about what this one has: its object may be in the other one.
 */
export function decideClaim({
  version,
  isHere,
  nowMs,
  missingAt,
  keepUpTo = 0,
  removeAfterMs = defaultRemoveAfterMs,
}: ClaimState): ClaimDecision {
  if (isHere || version <= keepUpTo) return { kind: 'keep' }
  const removableAtMs = readRevision(version).atMs + removeAfterMs
  if (nowMs <= removableAtMs) return { kind: 'wait', ms: Math.max(minWaitMs, removableAtMs - nowMs) }
  if (missingAt === undefined) return { kind: 'read' }
  if (missingAt > laterRevision(version, removeAfterMs)) return { kind: 'remove' }
  return { kind: 'wait', ms: Math.max(minWaitMs, removableAtMs - readRevision(missingAt).atMs) }
}
