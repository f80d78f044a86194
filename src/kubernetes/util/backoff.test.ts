import { deepEqual, equal, ok } from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { exponentialDelayMs, jitteredDelayMs } from './backoff.ts'

const backoff = { minMs: 800, maxMs: 30_000 }

test('the exponential delay doubles from its minimum to its maximum', () => {
  const delays = [0, 1, 2, 3, 6, 7, 1_000].map(failures => exponentialDelayMs(failures, backoff))
  deepEqual(delays, [800, 800, 1_600, 3_200, 25_600, 30_000, 30_000])
})

test('the jittered delay covers the upper half of its step', () => {
  const range = (failures: number) => [jitteredDelayMs(failures, backoff, 0), jitteredDelayMs(failures, backoff, 1)]
  deepEqual(
    [range(1), range(2), range(6), range(50)],
    [
      [800, 1_600],
      [1_600, 3_200],
      [15_000, 30_000],
      [15_000, 30_000],
    ],
  )
})

test('every jittered delay is within the bounds, also if the maximum is below the minimum', () => {
  const ms = fc.integer({ min: 1, max: 100_000 })
  fc.assert(
    fc.property(fc.nat(), ms, ms, fc.double({ min: 0, max: 0.999, noNaN: true }), (failures, minMs, maxMs, random) => {
      const delay = jitteredDelayMs(failures, { minMs, maxMs }, random)
      ok(delay >= Math.min(minMs, maxMs) && delay <= maxMs, `${delay}`)
    }),
  )
  equal(jitteredDelayMs(1, { minMs: 10, maxMs: 5 }, 0.5), 5)
})
