import { deepEqual, equal, throws } from 'node:assert/strict'
import { test } from 'node:test'
import { RequestRateLimiter } from './request-rate-limiter.ts'

test('allows a burst immediately, spreads further requests evenly, and refills the bucket up to its size', async () => {
  let nowMs = 0
  const waits: number[] = []
  const limiter = new RequestRateLimiter(
    { qps: 10, burst: 3 },
    {
      nowMs: () => nowMs,
      sleep: async ms => {
        waits.push(ms)
      },
    },
  )
  for (let request = 0; request < 5; request++) await limiter.wait()
  deepEqual(waits, [100, 200])
  nowMs = 10_000
  for (let request = 0; request < 3; request++) equal(limiter.wait(), undefined)
  await limiter.wait()
  deepEqual(waits, [100, 200, 100])
})

test('rejects options that are out of range and names them', () => {
  const clock = { nowMs: () => 0, sleep: async () => undefined }
  throws(() => new RequestRateLimiter({ qps: 0, burst: 1 }, clock), /rateLimit.qps must be a number > 0, got 0/)
  throws(() => new RequestRateLimiter({ qps: 1, burst: 0 }, clock), /rateLimit.burst must be a number >= 1, got 0/)
})
