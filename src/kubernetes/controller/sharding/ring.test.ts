import { deepEqual, equal, ok } from 'node:assert/strict'
import { test } from 'node:test'
import { assignBuckets } from './assign-buckets.ts'
import { maxSlots } from './bucket.ts'
import { formatRing, parseRing, unknownRing } from './ring.ts'

test('reads what it wrote', () => {
  const slots = Array.from({ length: maxSlots }, (_, slot) => slot)
  const targets = assignBuckets(unknownRing(1).targets, slots)
  const members = new Map(slots.map(slot => [slot, { session: `member-${slot}_0a1b2c3d.1`, uid: `u${slot}`, since: slot }]))
  const ring = { ...unknownRing(7), members, targets, homes: targets }
  ring.releasing[5] = 1
  deepEqual(parseRing(formatRing(ring)), ring)
  deepEqual(parseRing(formatRing(unknownRing(3))), unknownRing(3))
  const settled = { ...unknownRing(7), members: new Map(), targets, homes: targets, holders: targets }
  ok(formatRing(settled).length < 1_200)
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
    `{"version":1,"members":{"62":{"session":"a","uid":"u","since":1}},"holders":"${'0'.repeat(1_024)}"}`,
    `{"version":1,"members":{"0":{"session":"a","uid":"u","since":1e300}},"holders":"${'0'.repeat(1_024)}"}`,
    `{"version":1,"members":{"0":{}},"holders":"${'0'.repeat(1_024)}"}`,
    `{"version":1,"members":{},"holders":"${'!'.repeat(1_024)}"}`,
  ])
    equal(parseRing(text), undefined, text ?? 'undefined')
})
