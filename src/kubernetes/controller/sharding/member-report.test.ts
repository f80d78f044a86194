import { deepEqual, equal } from 'node:assert/strict'
import { test } from 'node:test'
import { formatReport, noReport, parseReport } from './member-report.ts'

test('reads what it wrote', () => {
  const report = { ring: 'r', stopped: 3, prepared: 2, busy: [0, 1_023], isLeaving: true }
  deepEqual(parseReport(formatReport(report)), report)
})

test('each bucket is busy once, and what is no bucket is not', () => {
  const busy = JSON.stringify([5, 5, -1, 1_024, 0.5, '7', null, ...Array.from({ length: 50_000 }, () => 9)])
  deepEqual(parseReport(formatReport(noReport).replace('[]', busy))?.busy, [5, 9])
})

test('what is no report is undefined', () => {
  for (const text of [
    undefined,
    '',
    'null',
    '{}',
    '{"ring":1,"stopped":0,"prepared":0,"busy":[]}',
    '{"ring":"","stopped":0,"prepared":0,"busy":{}}',
  ])
    equal(parseReport(text), undefined, text ?? 'undefined')
})
