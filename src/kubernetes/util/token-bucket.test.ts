import { deepEqual, throws } from 'node:assert/strict'
import { test } from 'node:test'
import { TokenBucket } from './token-bucket.ts'

test('a burst is available immediately, further reservations are spread evenly', () => {
  const bucket = new TokenBucket('rate', { qps: 10, burst: 2 }, 0)
  deepEqual(
    [1, 2, 3, 4].map(() => bucket.reserve(0)),
    [0, 0, 100, 200],
  )
})

test('the bucket refills with time, up to its burst', () => {
  const bucket = new TokenBucket('rate', { qps: 10, burst: 2 }, 0)
  for (let count = 0; count < 3; count++) bucket.reserve(0)
  deepEqual([bucket.reserve(100), bucket.reserve(60_000), bucket.reserve(60_000), bucket.reserve(60_000)], [100, 0, 0, 100])
})

test('rejects a rate that is out of range and names the option', () => {
  throws(() => new TokenBucket('retryRate', { qps: 0, burst: 1 }, 0), /retryRate\.qps must be a number > 0, got 0/)
  throws(() => new TokenBucket('retryRate', { qps: 1, burst: 0.5 }, 0), /retryRate\.burst must be a number >= 1, got 0\.5/)
})

test('a token is taken only if there is one, and nothing is reserved otherwise', () => {
  const bucket = new TokenBucket('rate', { qps: 2, burst: 3 }, 0)
  deepEqual(
    [0, 0, 0, 0, 0, 400, 500, 500, 10_000, 10_000, 10_000, 10_000].map(nowMs => bucket.tryTake(nowMs)),
    [true, true, true, false, false, false, true, false, true, true, true, false],
  )
})
