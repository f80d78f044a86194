import { assignLive } from './assign-buckets.ts'
import { bucketCount, maxSlots, noSlot } from './bucket.ts'
import type { MemberReport } from './member-report.ts'
import { isRingVersion, type Ring, type RingMember, unknownRing, unknownSlot } from './ring.ts'

/** What the Lease of a slot shows. */
export type Slot = {
  /** UID of the Lease. */
  readonly uid: string
  /** Its holder; empty: released, or its last holder's Lease expired and was cleared. */
  readonly session: string
  readonly report: MemberReport
}

export type RingFacts = {
  /** UID of the ring's Lease; undefined if it does not exist. */
  readonly ringUid: string | undefined
  /** What it contains; undefined if it does not exist or cannot be read. */
  readonly ring: Ring | undefined
  /** The highest version that is known from anywhere: a new ring gets a higher one. */
  readonly knownVersion: number
  readonly slots: ReadonlyMap<number, Slot>
  /** Slots from this one on get no new members: no member of these settings claims them. */
  readonly slotCount: number
  /**
   * Whether the member of a slot whose Lease is gone has ended by now: a Lease duration has passed since the observer missed it, by the
   * observer's monotonic clock (invariant 2).
   */
  hasEnded(slot: number): boolean
}

/**
 * The ring that should replace the current one; undefined if nothing is to be changed. The writer sends the version of the Lease that
 * it was decided from, so that of two writers one gets Conflict. It may be decided from old reports: what a member acknowledged stays true
 * for the version of the ring that it names, and a session that has ended never returns.
 *
 * A bucket gets a new holder only if the old one acknowledged that it stopped, or its session has ended (invariant 7).
 */
export function decideRing(facts: RingFacts): Ring | undefined {
  const latest = facts.ring ?? unknownRing(facts.knownVersion)
  // A version that cannot be counted up would end the ring for good: versions start again, as after a loss.
  const ring = isRingVersion(latest.version + 1) ? latest : unknownRing(0)
  const version = ring.version + 1
  const members = nextMembers(ring, facts)
  const live = [...members.keys()].filter(slot => !facts.slots.get(slot)?.report.isLeaving).sort((a, b) => a - b)
  if (members.size === 0) return undefined
  const { homes, targets } = assignLive(ring, live)

  const acknowledges = (slot: number, what: 'stopped' | 'prepared'): boolean => {
    const member = ring.members.get(slot)
    const current = facts.slots.get(slot)
    if (!member || current?.session !== member.session) return false
    // A version above the ring's was acknowledged before versions started again.
    return current.report.ring === facts.ringUid && current.report[what] >= member.since && current.report[what] <= ring.version
  }
  const busy = new Map([...facts.slots].map(([slot, { report }]) => [slot, new Set(report.busy)]))
  const isBusy = (slot: number, bucket: number): boolean => busy.get(slot)?.has(bucket) === true
  // Every member that may have worked by a ring that was lost has acknowledged this one, and none may still work whose Lease is gone.
  const isKnown =
    [...facts.slots].every(
      ([slot, { session }]) => session === '' || (ring.members.get(slot)?.session === session && acknowledges(slot, 'stopped')),
    ) && [...members].every(([slot, { session }]) => facts.slots.get(slot)?.session === session)
  // By slot, because the loop below runs often.
  const isMember = new Uint8Array(maxSlots)
  const isReplaced = new Uint8Array(maxSlots)
  const isPrepared = new Uint8Array(maxSlots)
  const isStopped = new Uint8Array(maxSlots)
  for (const [slot, { session }] of members) {
    isMember[slot] = 1
    isReplaced[slot] = session === ring.members.get(slot)?.session ? 0 : 1
    isPrepared[slot] = acknowledges(slot, 'prepared') ? 1 : 0
    isStopped[slot] = acknowledges(slot, 'stopped') ? 1 : 0
  }
  const holders = ring.holders.slice()
  const releasing = ring.releasing.slice()
  for (let bucket = 0; bucket < bucketCount; bucket++) {
    const target = targets[bucket]!
    const before = holders[bucket]!
    const wasReleasing = ring.releasing[bucket] === 1
    if (before === target && !wasReleasing) continue
    let holder = before
    if (before === unknownSlot) {
      if (isKnown && ![...busy.values()].some(buckets => buckets.has(bucket))) holder = noSlot
    } else if (before >= 0 && before !== target) {
      const hasEnded = isMember[before] === 0 || isReplaced[before] === 1
      if (hasEnded || (wasReleasing && isStopped[before] === 1 && !isBusy(before, bucket))) holder = noSlot
    }
    if (holder === noSlot) holder = target
    holders[bucket] = holder
    const isReady = target >= 0 && ring.targets[bucket] === target && isPrepared[target] === 1
    releasing[bucket] = holder >= 0 && holder !== target && (isReady || wasReleasing) ? 1 : 0
  }

  const next: Ring = { version, members: new Map(), homes, targets, holders, releasing }
  const result = { ...next, members: withSince(ring, next, members) }
  return facts.ring && isSame(ring, result) ? undefined : result
}

/** The members after what the Leases show: a session that is proven ended makes place for the slot's new one. */
function nextMembers(ring: Ring, { slots, slotCount, hasEnded }: RingFacts): Map<number, Omit<RingMember, 'since'>> {
  const members = new Map<number, Omit<RingMember, 'since'>>()
  for (const slot of new Set([...ring.members.keys(), ...slots.keys()])) {
    const before = ring.members.get(slot)
    const current = slots.get(slot)
    // The same Lease with another holder: it was released, or taken over after it expired. A Lease that was deleted proves nothing.
    const isEnded =
      !before || (current?.uid === before.uid && current.session !== before.session) || (current?.uid !== before.uid && hasEnded(slot))
    if (!isEnded) members.set(slot, before)
    else if (current && current.session !== '' && slot < slotCount) members.set(slot, { session: current.session, uid: current.uid })
  }
  return members
}

/** Records for each member the version at which it was last ordered to fill its caches or to stop, which it must acknowledge. */
function withSince(ring: Ring, next: Ring, members: ReadonlyMap<number, Omit<RingMember, 'since'>>): Map<number, RingMember> {
  const changed = new Set<number>()
  for (let bucket = 0; bucket < bucketCount; bucket++) {
    if (next.targets[bucket] !== ring.targets[bucket]) changed.add(next.targets[bucket]!)
    const isOrdered = next.releasing[bucket] === 1 && !(ring.releasing[bucket] === 1 && ring.holders[bucket] === next.holders[bucket])
    if (isOrdered) changed.add(next.holders[bucket]!)
  }
  return new Map(
    [...members].map(([slot, { session, uid }]) => {
      const before = ring.members.get(slot)
      const isKept = before?.session === session && !changed.has(slot)
      return [slot, { session, uid, since: isKept ? before.since : next.version }]
    }),
  )
}

function isSame(a: Ring, b: Ring): boolean {
  if (a.members.size !== b.members.size) return false
  for (const [slot, { session, since }] of b.members) {
    const before = a.members.get(slot)
    if (before?.session !== session || before.since !== since) return false
  }
  for (let bucket = 0; bucket < bucketCount; bucket++) {
    const isEqual =
      a.holders[bucket] === b.holders[bucket] &&
      a.targets[bucket] === b.targets[bucket] &&
      a.homes[bucket] === b.homes[bucket] &&
      a.releasing[bucket] === b.releasing[bucket]
    if (!isEqual) return false
  }
  return true
}
