import { deepEqual, equal, ok } from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { assignBuckets, assignLive } from './assign-buckets.ts'
import { bucketCount, noSlot } from './bucket.ts'

const none = new Int16Array(bucketCount).fill(noSlot)

function loads(assignment: Int16Array): Map<number, number> {
  const counts = new Map<number, number>()
  for (const slot of assignment) counts.set(slot, (counts.get(slot) ?? 0) + 1)
  return counts
}

const rangesOf = (assignment: Int16Array, slot: number) =>
  assignment.filter((owner, bucket) => owner === slot && assignment[bucket + 1] !== slot).length
const movesOf = (before: Int16Array, after: Int16Array) => after.filter((slot, bucket) => slot !== before[bucket]).length

/** The fewest moves that bring each of `slots` to at most its share, by trying which of them keeps how many. */
function fewestMoves(before: Int16Array, slots: readonly number[]): number {
  const share = Math.ceil(bucketCount / slots.length)
  const counts = loads(before)
  let kept = 0
  for (const slot of slots) kept += Math.min(counts.get(slot) ?? 0, share)
  // All members may have the larger share only as long as the sum is not exceeded, which keeping never does.
  return bucketCount - kept
}

const slotSet = fc.uniqueArray(fc.integer({ min: 0, max: 20 }), { minLength: 1, maxLength: 12 })

test('over any sequence of memberships no slot exceeds its share, and at most 5 % more buckets move than must', () => {
  fc.assert(
    fc.property(fc.array(slotSet, { minLength: 1, maxLength: 8 }), sequence => {
      let ring: Parameters<typeof assignLive>[0] & { targets: Int16Array } = { homes: none, targets: none }
      let moved = 0
      let minimum = 0
      for (const slots of sequence) {
        const next = assignLive(ring, slots)
        const counts = loads(next.targets)
        const share = Math.ceil(bucketCount / slots.length)
        deepEqual(
          [...counts].filter(([slot, count]) => !slots.includes(slot) || count > share),
          [],
        )
        // Each range is about 100 characters of a URL.
        for (const slot of slots) ok(rangesOf(next.targets, slot) <= 60, `${rangesOf(next.targets, slot)} ranges`)
        moved += movesOf(ring.targets, next.targets)
        minimum += fewestMoves(ring.targets, slots)
        ring = next
      }
      ok(moved <= minimum * 1.05, `${moved} moves, ${minimum} are necessary`)
    }),
    { numRuns: 300 },
  )
})

test('one slot that joins or leaves moves only what it gets or had', () => {
  for (let count = 1; count < 40; count++) {
    const slots = Array.from({ length: count }, (_, slot) => slot)
    const before = assignBuckets(none, slots)
    const joined = assignBuckets(before, [...slots, count])
    equal(movesOf(before, joined), loads(joined).get(count))
    if (count === 1) continue
    equal(movesOf(before, assignBuckets(before, slots.slice(1))), loads(before).get(0))
  }
})

test('a rolling restart moves each bucket away and back, never more', () => {
  const slots = [0, 1, 2, 3, 4]
  let ring: { homes: Int16Array; targets: Int16Array } = assignLive({ homes: none, targets: none }, slots)
  const first = ring.targets
  const moves = new Uint8Array(bucketCount)
  for (const restarted of slots) {
    for (const live of [slots.filter(slot => slot !== restarted), slots]) {
      const next = assignLive(ring, live)
      next.targets.forEach((slot, bucket) => {
        if (slot !== ring.targets[bucket]) moves[bucket]!++
      })
      ring = next
    }
    deepEqual(ring.targets, first)
  }
  ok(moves.every(count => count === 2))
})

test('the buckets of a slot that leaves are spread over all others', () => {
  const before = assignBuckets(none, [0, 1, 2, 3, 4])
  const after = assignBuckets(before, [0, 1, 2, 3])
  for (const slot of [0, 1, 2, 3]) ok(after.filter((owner, bucket) => owner === slot && before[bucket] === 4).length > 40)
})
