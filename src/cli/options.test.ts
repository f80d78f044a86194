import { equal, throws } from 'node:assert/strict'
import { test } from 'node:test'
import { durationBetween } from './options.ts'

test('a duration outside its range is rejected with the range', () => {
  const parse = durationBetween('3s', '10m')
  for (const text of ['3s', '3000ms', '20s', '10m']) equal(parse(text), text)
  for (const text of ['2999ms', '0s', '10m1s', '1h']) throws(() => parse(text), /It must be from 3s to 10m/)
  throws(() => parse('fast'), /A duration is expected/)
})
