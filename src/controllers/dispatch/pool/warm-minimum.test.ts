import { deepEqual, equal, match } from 'node:assert/strict'
import { test } from 'node:test'
import type { PoolWindow } from '../../../api/index.ts'
import { warmMinimum } from './warm-minimum.ts'

const office: PoolWindow = { days: ['Mon', 'Tue', 'Wed', 'Thu', 'Fri'], from: '07:00', to: '19:00', timeZone: 'Europe/Berlin', min: 5 }
const night: PoolWindow = { days: ['Sat'], from: '22:00', to: '04:00', min: 2 }

for (const [what, window, at, min] of [
  ['before it opens', office, '2026-06-01T04:59:59Z', 0],
  ['at its beginning, in summer time', office, '2026-06-01T05:00:00Z', 5],
  ['in winter the same clock is another instant', office, '2026-12-01T05:30:00Z', 0],
  ['in winter it opens an hour later', office, '2026-12-01T06:00:00Z', 5],
  ['its end does not belong to it', office, '2026-06-01T17:00:00Z', 0],
  ['on a Saturday', office, '2026-06-06T10:00:00Z', 0],
  ['over midnight: the evening', night, '2026-06-06T23:00:00Z', 2],
  ['over midnight: the morning after', night, '2026-06-07T03:59:00Z', 2],
  ['over midnight: not the evening after', night, '2026-06-07T23:00:00Z', 0],
  ['over midnight: not the morning before', night, '2026-06-06T03:00:00Z', 0],
  ['the same from and to is the whole day', { from: '00:00', to: '00:00', min: 1 }, '2026-06-07T13:00:00Z', 1],
] as [string, PoolWindow, string, number][]) {
  test(`a window: ${what}`, () => equal(warmMinimum({ schedule: [window] }, Date.parse(at)).min, min))
}

test('the largest of spec.min and every open window counts', () => {
  const at = Date.parse('2026-06-01T10:00:00Z')
  equal(warmMinimum({ min: 8, schedule: [office] }, at).min, 8)
  equal(warmMinimum({ min: 1, schedule: [office, { from: '09:00', to: '11:00', min: 9 }] }, at).min, 9)
})

test('it says when to look again: at the next boundary, and at least once an hour', () => {
  equal(warmMinimum({}, 0).requeueAfterMs, undefined)
  equal(warmMinimum({ schedule: [office] }, Date.parse('2026-06-01T04:59:30Z')).requeueAfterMs, 30_000)
  equal(warmMinimum({ schedule: [office] }, Date.parse('2026-06-01T05:00:00Z')).requeueAfterMs, 3_600_000)
})

test('a time zone that nobody knows is told, and costs nothing but its own window', () => {
  const { min, errors } = warmMinimum(
    { min: 1, schedule: [{ ...office, timeZone: 'Mars/Olympus' }, office] },
    Date.parse('2026-06-01T10:00:00Z'),
  )
  equal(min, 5)
  equal(errors.length, 1)
  match(errors[0]!, /^spec\.schedule\[0\]\.timeZone "Mars\/Olympus" is not a time zone/)
  deepEqual(warmMinimum({ schedule: [office] }, 0).errors, [])
})
