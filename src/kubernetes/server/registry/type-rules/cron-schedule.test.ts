import { equal } from 'node:assert/strict'
import { test } from 'node:test'
import { isTimeZone, scheduleError } from './cron-schedule.ts'

for (const schedule of [
  '* * * * *',
  '*/5 0-6/2 1,15 jan-mar/2 MON-FRI',
  '0 3 ? * ?',
  '5/10 * * * sun',
  '@daily',
  '@every 1h30m',
  'CRON_TZ=Europe/Berlin 0 0 * * *',
  '  0  0 * * *  ',
]) {
  test(`accepts the schedule ${schedule}`, () => equal(scheduleError(schedule), undefined))
}

// The messages are those of github.com/robfig/cron/v3, checked against kube-apiserver in test/conformance.
for (const [schedule, reason] of [
  ['', 'expected exactly 5 fields, found 0: []'],
  ['* * * *', 'expected exactly 5 fields, found 4: [* * * *]'],
  ['60 * * * *', 'end of range (60) above maximum (59): 60'],
  ['* * 0 * *', 'beginning of range (0) below minimum (1): 0'],
  ['5-1 * * * *', 'beginning of range (5) beyond end of range (1): 5-1'],
  ['*/0 * * * *', 'step of range should be a positive number: */0'],
  ['1-2-3 * * * *', 'too many hyphens: 1-2-3'],
  ['1/2/3 * * * *', 'too many slashes: 1/2/3'],
  ['* * * * * *', 'expected exactly 5 fields, found 6: [* * * * * *]'],
  ['@sometimes', 'unrecognized descriptor: @sometimes'],
  ['@every x', 'failed to parse duration @every x: time: invalid duration "x"'],
  ['TZ=Mars/Base * * * * *', 'provided bad location Mars/Base: unknown time zone Mars/Base'],
] as const) {
  test(`rejects the schedule ${JSON.stringify(schedule)}`, () => equal(scheduleError(schedule), reason))
}

test('accepts time zones of the database and rejects offsets', () => {
  equal(isTimeZone('Europe/Berlin'), true)
  equal(isTimeZone('UTC'), true)
  equal(isTimeZone('Mars/Base'), false)
  equal(isTimeZone('+01:00'), false)
  equal(isTimeZone(''), false)
})

test('rejects a long invalid schedule quickly', () => {
  equal(scheduleError(`@every ${'1'.repeat(200_000)}`)?.startsWith('failed to parse duration'), true)
})
