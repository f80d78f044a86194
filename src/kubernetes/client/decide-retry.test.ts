import { deepEqual, equal } from 'node:assert/strict'
import { test } from 'node:test'
import { type AttemptFailure, decideRetry, parseRetryAfter } from './decide-retry.ts'

const response = (status: number, retryAfterMs?: number): AttemptFailure => ({ kind: 'response', status, retryAfterMs })
const giveUp = { kind: 'give-up' }

for (const { name, failure, idempotent = true, retries = 0, want } of [
  { name: 'retries a 429 after its Retry-After', failure: response(429, 1_000), want: { kind: 'retry', delayMs: 1_050 } },
  {
    name: 'retries a 503 for a request that is not idempotent',
    failure: response(503, 2_000),
    idempotent: false,
    want: { kind: 'retry', delayMs: 2_100 },
  },
  { name: 'gives up on a 503 without Retry-After', failure: response(503), want: giveUp },
  { name: 'gives up if Retry-After is too long', failure: response(429, 30_001), want: giveUp },
  { name: 'gives up on another status', failure: response(500, 1_000), want: giveUp },
  { name: 'retries an idempotent request after a reset', failure: { kind: 'reset' } as const, want: { kind: 'retry', delayMs: 75 } },
  { name: 'backs off after repeated resets', failure: { kind: 'reset' } as const, retries: 3, want: { kind: 'retry', delayMs: 300 } },
  { name: 'gives up on a reset of another request', failure: { kind: 'reset' } as const, idempotent: false, want: giveUp },
  { name: 'gives up on other failures', failure: { kind: 'other' } as const, want: giveUp },
  { name: 'gives up after 5 retries', failure: response(429, 1_000), retries: 5, want: giveUp },
]) {
  test(name, () => deepEqual(decideRetry(failure, { idempotent, retries }, 0.5), want))
}

test('parses Retry-After as seconds or as an HTTP date', () => {
  const nowMs = Date.parse('2026-03-01T10:00:00Z')
  equal(parseRetryAfter('3', nowMs), 3_000)
  equal(parseRetryAfter('Sun, 01 Mar 2026 10:00:07 GMT', nowMs), 7_000)
  equal(parseRetryAfter('Sun, 01 Mar 2026 09:00:00 GMT', nowMs), 0)
  equal(parseRetryAfter('soon', nowMs), undefined)
  equal(parseRetryAfter(undefined, nowMs), undefined)
})
