import { deepEqual } from 'node:assert/strict'
import { test } from 'node:test'
import { atMostEvery } from './at-most-every.ts'

test('reports the first value of each interval', () => {
  let nowMs = 0
  const reported: number[] = []
  const report = atMostEvery(
    10_000,
    (value: number) => reported.push(value),
    () => nowMs,
  )
  for (nowMs = 0; nowMs < 25_000; nowMs += 1_000) report(nowMs)
  deepEqual(reported, [0, 10_000, 20_000])
})
