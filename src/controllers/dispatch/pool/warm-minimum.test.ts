import { deepEqual, equal, match } from 'node:assert/strict'
import { test } from 'node:test'
import type { PoolWindow } from '../../../api/index.ts'
import { warmMinimum } from './warm-minimum.ts'

const office: PoolWindow = { days: ['Mon', 'Tue', 'Wed', 'Thu', 'Fri'], from: '07:00', to: '19:00', timeZone: 'Europe/Berlin', min: 5 }
const night: PoolWindow = { days: ['Sat'], from: '22:00', to: '04:00', min: 2 }

for (const [name, window, at, min] of [
  ['closed before its start', office, '2026-06-01T04:59:59Z', 0],
  ['open at its start, in summer time', office, '2026-06-01T05:00:00Z', 5],
  ['closed in winter at the same UTC time', office, '2026-12-01T05:30:00Z', 0],
  ['open in winter one hour later in UTC', office, '2026-12-01T06:00:00Z', 5],
  ['closed at its end', office, '2026-06-01T17:00:00Z', 0],
  ['closed on other days', office, '2026-06-06T10:00:00Z', 0],
  ['across midnight: open in the evening', night, '2026-06-06T23:00:00Z', 2],
  ['across midnight: open the next morning', night, '2026-06-07T03:59:00Z', 2],
  ['across midnight: closed the next evening', night, '2026-06-07T23:00:00Z', 0],
  ['across midnight: closed the morning before', night, '2026-06-06T03:00:00Z', 0],
  ['open all day if from equals to', { from: '00:00', to: '00:00', min: 1 }, '2026-06-07T13:00:00Z', 1],
] as [string, PoolWindow, string, number][]) {
  test(`a window: ${name}`, () => equal(warmMinimum({ schedule: [window] }, Date.parse(at)).min, min))
}

test('uses the largest of spec.min and the minimums of all open windows', () => {
  const at = Date.parse('2026-06-01T10:00:00Z')
  equal(warmMinimum({ min: 8, schedule: [office] }, at).min, 8)
  equal(warmMinimum({ min: 1, schedule: [office, { from: '09:00', to: '11:00', min: 9 }] }, at).min, 9)
})

test('is evaluated again at the next boundary, and at least once an hour', () => {
  equal(warmMinimum({}, 0).requeueAfterMs, undefined)
  equal(warmMinimum({ schedule: [office] }, Date.parse('2026-06-01T04:59:30Z')).requeueAfterMs, 30_000)
  equal(warmMinimum({ schedule: [office] }, Date.parse('2026-06-01T05:00:00Z')).requeueAfterMs, 3_600_000)
})

test('an unknown time zone is reported, and only its own window is ignored', () => {
  const { min, errors } = warmMinimum(
    { min: 1, schedule: [{ ...office, timeZone: 'Mars/Olympus' }, office] },
    Date.parse('2026-06-01T10:00:00Z'),
  )
  equal(min, 5)
  equal(errors.length, 1)
  match(errors[0]!, /^spec\.schedule\[0\]\.timeZone "Mars\/Olympus" is not a known time zone/)
  deepEqual(warmMinimum({ schedule: [office] }, 0).errors, [])
})
