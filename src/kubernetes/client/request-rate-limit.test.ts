import { deepEqual, equal, throws } from 'node:assert/strict'
import { test } from 'node:test'
import { RequestRateLimit } from './request-rate-limit.ts'

test('a burst goes at once, the rest evenly, and a pause fills the bucket again but not above its size', async () => {
  let nowMs = 0
  const waits: number[] = []
  const pace = new RequestRateLimit(
    { qps: 10, burst: 3 },
    {
      nowMs: () => nowMs,
      sleep: async ms => {
        waits.push(ms)
      },
    },
  )
  for (let request = 0; request < 5; request++) await pace.wait()
  deepEqual(waits, [100, 200])
  nowMs = 10_000
  for (let request = 0; request < 3; request++) equal(pace.wait(), undefined)
  await pace.wait()
  deepEqual(waits, [100, 200, 100])
})

test('options out of range are named', () => {
  const clock = { nowMs: () => 0, sleep: async () => undefined }
  throws(() => new RequestRateLimit({ qps: 0, burst: 1 }, clock), /pace.qps must be a number > 0, got 0/)
  throws(() => new RequestRateLimit({ qps: 1, burst: 0 }, clock), /pace.burst must be a number >= 1, got 0/)
})
