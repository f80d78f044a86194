import { deepEqual, equal, ok } from 'node:assert/strict'
import { test } from 'node:test'
import { assignBuckets } from './assign-buckets.ts'
import { bucketCount, maxSlots } from './bucket.ts'
import { formatRing, parseRing, unknownRing } from './ring.ts'

test('reads what it wrote', () => {
  const slots = Array.from({ length: maxSlots }, (_, slot) => slot)
  const targets = assignBuckets(unknownRing(1).targets, slots)
  const members = new Map(slots.map(slot => [slot, { session: `member-${slot}_0a1b2c3d.1`, uid: `u${slot}`, since: slot }]))
  const ring = { ...unknownRing(7), members, targets, homes: targets }
  ring.releasing[5] = 1
  deepEqual(parseRing(formatRing(ring)), ring)
  deepEqual(parseRing(formatRing(unknownRing(3))), unknownRing(3))
})

test('a ring takes 1 KB and 130 bytes for each member with the name of a Pod, and 3 KB more while buckets move', () => {
  for (const count of [1, 5, maxSlots]) {
    const slots = Array.from({ length: count }, (_, slot) => slot)
    const targets = assignBuckets(unknownRing(1).targets, slots)
    const session = (slot: number) => `oarlock-controllers-7c9d8b6f5d-x${slot}z4k_0a1b2c3d.1`
    const members = new Map(slots.map(slot => [slot, { session: session(slot), uid: crypto.randomUUID(), since: 1_000 }]))
    const settled = { ...unknownRing(1_000), members, targets, homes: targets, holders: targets }
    const size = formatRing(settled).length
    ok(size < 1_100 + 135 * count && size > 1_000 + 110 * count, `${size} bytes at rest with ${count} members`)
    const moving = {
      ...settled,
      holders: unknownRing(1).holders,
      homes: unknownRing(1).homes,
      releasing: new Uint8Array(bucketCount).fill(1),
    }
    const more = formatRing(moving).length - size
    ok(more > 3_000 && more < 3_200, `${more} bytes more with ${count} members`)
  }
})

test('what is no ring is undefined', () => {
  for (const text of [
    undefined,
    '',
    '{}',
    'null',
    '[]',
    '{"version":1,"members":{},"holders":"0"}',
    `{"version":${Number.MAX_SAFE_INTEGER},"members":{},"holders":"${'0'.repeat(1_024)}"}`,
    `{"version":${2 ** 31 - 1},"members":{},"holders":"${'0'.repeat(1_024)}"}`,
    `{"version":1,"members":{"0":{"session":"${'a'.repeat(301)}","uid":"u","since":1}},"holders":"${'0'.repeat(1_024)}"}`,
    `{"version":1,"members":{"62":{"session":"a","uid":"u","since":1}},"holders":"${'0'.repeat(1_024)}"}`,
    `{"version":1,"members":{"0":{"session":"a","uid":"u","since":1e300}},"holders":"${'0'.repeat(1_024)}"}`,
    `{"version":1,"members":{"0":{}},"holders":"${'0'.repeat(1_024)}"}`,
    `{"version":1,"members":{},"holders":"${'!'.repeat(1_024)}"}`,
  ])
    equal(parseRing(text), undefined, text ?? 'undefined')
})
