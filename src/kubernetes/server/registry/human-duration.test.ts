import assert from 'node:assert/strict'
import { test } from 'node:test'
import { humanDuration } from './index.ts'

const [minute, hour, day] = [60, 3_600, 86_400]

test('formats durations as kubectl does', () => {
  for (const [seconds, want] of [
    [-5, '<invalid>'],
    [0, '0s'],
    [119, '119s'],
    [120, '2m'],
    [192, '3m12s'],
    [10 * minute + 5, '10m'],
    [179 * minute, '179m'],
    [3 * hour + 30 * minute, '3h30m'],
    [8 * hour, '8h'],
    [47 * hour, '47h'],
    [2 * day + 3 * hour, '2d3h'],
    [30 * day, '30d'],
    [800 * day, '2y70d'],
    [9 * 365 * day, '9y'],
  ] as const) {
    assert.equal(humanDuration(seconds * 1_000), want, String(seconds))
  }
})
