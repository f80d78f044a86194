import { deepEqual } from 'node:assert/strict'
import { test } from 'node:test'
import { decideRenewal, type RenewalEvent, type RenewalStep } from './decide-renewal.ts'

// How a worker, its supervisor and an observer work together over time is in testdata/.
const timings = { renewMs: 2_000, stuckMs: 120_000 }
const wait = (ms: number): RenewalStep['next'] => ({ kind: 'wait', ms })

for (const [name, event, want] of [
  ['the first renewal is due an interval after the registration was sent', { kind: 'registered', sentAtMs: 99_500 }, { next: wait(1_500) }],
  ['a late first renewal is due immediately', { kind: 'registered', sentAtMs: 90_000 }, { next: wait(0) }],
  ['a renewal counts from before it is sent', { kind: 'due', aliveAtMs: 99_000 }, { next: { kind: 'send', sentAtMs: 100_000 } }],
  ['a worker that was blocked for two minutes does not renew', { kind: 'due', aliveAtMs: -20_001 }, { next: wait(2_000) }],
  [
    'invariant 2: a slow response renews from when the request was sent',
    { kind: 'answered', sentAtMs: 98_500, status: 200, text: '' },
    { renewedAtMs: 98_500, next: wait(500) },
  ],
  ['a deleted Lease is lost', { kind: 'answered', sentAtMs: 99_990, status: 404, text: '' }, { next: { kind: 'lost' } }],
  ['a replaced Lease is lost', { kind: 'answered', sentAtMs: 99_990, status: 409, text: '' }, { next: { kind: 'lost' } }],
  [
    'another status is an error, and the renewal is sent again',
    { kind: 'answered', sentAtMs: 99_990, status: 503, text: 'starting' },
    { error: 'failed to renew the Lease: 503 starting', next: wait(500) },
  ],
  ['so is a missing response', { kind: 'failed', message: 'no route' }, { error: 'no route', next: wait(500) }],
] as [string, RenewalEvent, RenewalStep][]) {
  test(name, () => deepEqual(decideRenewal(event, 100_000, timings), want))
}
