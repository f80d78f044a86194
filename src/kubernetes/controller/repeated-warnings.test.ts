import { deepEqual, equal } from 'node:assert/strict'
import { test } from 'node:test'
import { conflict } from '../object/index.ts'
import { causeOf, RepeatedWarnings } from './repeated-warnings.ts'

test('the first failure of each cause is logged, and then one per minute with the number of those in between', () => {
  let nowMs = 0
  const warnings = new RepeatedWarnings(() => nowMs)
  const logged: string[] = []
  const fail = (atMs: number, cause: string) => {
    nowMs = atMs
    const repeated = warnings.next(cause)
    if (repeated !== undefined) logged.push(`${atMs / 1_000} s: ${cause} ${repeated}`)
  }
  for (let atMs = 0; atMs <= 130_000; atMs += 500) {
    fail(atMs, 'Forbidden')
    if (atMs % 20_000 === 10_000) fail(atMs, 'ECONNREFUSED')
  }
  fail(400_000, 'Forbidden')
  // Long after the last one of the other cause it is a first one again.
  fail(730_000, 'NotFound')
  fail(730_000, 'ECONNREFUSED')
  deepEqual(logged, [
    '0 s: Forbidden 0',
    '10 s: ECONNREFUSED 0',
    '60 s: Forbidden 119',
    '70 s: ECONNREFUSED 2',
    '120 s: Forbidden 119',
    '130 s: ECONNREFUSED 2',
    '400 s: Forbidden 20',
    '730 s: NotFound 0',
    '730 s: ECONNREFUSED 0',
  ])
})

test('errors with one reason or code have one cause, whatever their texts', () => {
  const failure = (why: string) => conflict({ group: '', plural: 'configmaps' }, 'x', why)
  equal(causeOf(failure('it has version 7')), 'Conflict')
  equal(causeOf(failure('it has version 8')), 'Conflict')
  equal(causeOf(Object.assign(new Error('no'), { code: 'ECONNREFUSED' })), 'ECONNREFUSED')
  equal(causeOf(new RangeError('no')), 'RangeError')
})
