import { bucketCount, maxSlots, noSlot } from './bucket.ts'

/** The slot of each bucket, or {@link noSlot}. */
export type Assignment = ArrayLike<number>

/**
 * Assigns all buckets to `slots` by rendezvous hashing with bounded load: no slot gets more than its share, rounded up, and as few buckets
 * as possible move from where `before` has them. A bucket that must move goes to the slot with the highest score for it among those that
 * have room, and a slot that must give buckets up gives those for which its own score is lowest. `isFixed` excludes buckets from moving.
 * Without slots the result is `before`.
 */
export function assignBuckets(
  before: Assignment,
  slots: readonly number[],
  isFixed: (bucket: number) => boolean = () => false,
): Int16Array {
  const next = Int16Array.from(before)
  if (slots.length === 0) return next
  const counts = new Uint16Array(maxSlots)
  let unassigned = 0
  for (let bucket = 0; bucket < bucketCount; bucket++) {
    const slot = next[bucket]!
    if (slot >= 0) counts[slot]!++
    else unassigned++
  }
  const load = new Map(slots.map(slot => [slot, counts[slot]!]))
  const least = Math.floor(bucketCount / slots.length)
  const most = Math.ceil(bucketCount / slots.length)
  const isAssigned = unassigned === 0 && slots.reduce((sum, slot) => sum + counts[slot]!, 0) === bucketCount
  if (isAssigned && slots.every(slot => counts[slot]! >= least && counts[slot]! <= most)) return next
  let larger = bucketCount - least * slots.length
  const room = new Map<number, number>()
  // The slots that have most already get the larger shares: then fewer buckets move.
  const byLoad = [...slots].sort((a, b) => load.get(b)! - load.get(a)! || a - b)
  for (const slot of byLoad) room.set(slot, least + (larger-- > 0 ? 1 : 0) - load.get(slot)!)

  const moving: number[] = []
  for (let bucket = 0; bucket < bucketCount; bucket++) if (!load.has(next[bucket]!)) moving.push(bucket)
  for (const slot of slots) {
    const excess = -room.get(slot)!
    if (excess <= 0) continue
    const movable: number[] = []
    next.forEach((owner, bucket) => {
      if (owner === slot && !isFixed(bucket)) movable.push(bucket)
    })
    movable.sort((a, b) => score(slot, a) - score(slot, b) || a - b)
    const given = movable.slice(0, excess)
    moving.push(...given)
    room.set(slot, room.get(slot)! + given.length)
  }
  for (const bucket of moving) {
    let best = noSlot
    for (const slot of slots) if (room.get(slot)! > 0 && (best === noSlot || score(slot, bucket) > score(best, bucket))) best = slot
    // Only if fixed buckets fill a slot beyond its share: the others take what is left.
    if (best === noSlot) best = slots.reduce((a, b) => (room.get(b)! > room.get(a)! ? b : a))
    next[bucket] = best
    room.set(best, room.get(best)! - 1)
  }
  return next
}

/**
 * Where each bucket should be worked on now. Every slot of `homes` has buckets of its own; those of a slot that is vacant are lent to the
 * `live` ones and return when it is claimed again, so that a rolling restart moves each bucket away and back. A live slot without a home
 * (the first time it is claimed) makes new homes of what is assigned now.
 */
export function assignLive(
  { homes, targets }: { homes: Assignment; targets: Assignment },
  live: readonly number[],
): { homes: Int16Array; targets: Int16Array } {
  const sameHomes = Int16Array.from(homes)
  if (live.length === 0) return { homes: sameHomes, targets: Int16Array.from(targets) }
  if (live.some(slot => !sameHomes.includes(slot))) {
    const moved = assignBuckets(targets, live)
    return { homes: moved, targets: moved.slice() }
  }
  const isLive = new Set(live)
  const start = Int16Array.from(targets)
  const isHome = new Uint8Array(bucketCount)
  for (let bucket = 0; bucket < bucketCount; bucket++) {
    if (!isLive.has(sameHomes[bucket]!)) continue
    isHome[bucket] = 1
    start[bucket] = sameHomes[bucket]!
  }
  return { homes: sameHomes, targets: assignBuckets(start, live, bucket => isHome[bucket] === 1) }
}

/**
 * Adjacent buckets that are scored as one, so that the buckets of a slot are few ranges: with a score for each, a selector of 512 buckets would
 * be a URL of 23 KB, which servers and proxies refuse.
 */
const blockSize = 16

/** The score of a slot for a bucket, evenly distributed over 32 bits (the finalizer of MurmurHash3). */
function score(slot: number, bucket: number): number {
  let hash = Math.imul(slot * bucketCount + Math.floor(bucket / blockSize) + 1, 0x9e3779b1)
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b)
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35)
  return (hash ^ (hash >>> 16)) >>> 0
}
