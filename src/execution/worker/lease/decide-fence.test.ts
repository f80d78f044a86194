import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { decideFence, type FenceStep } from './decide-fence.ts'
import { checkLeaseTimings, defaultLeaseTimings } from './lease-timings.ts'

const never = Number.POSITIVE_INFINITY
for (const [sinceRenewalMs, sent, send, recheckInMs] of [
  [0, 'none', 'none', 6_000],
  [5_999, 'none', 'none', 1],
  [6_000, 'none', 'SIGINT', 1_500],
  [6_100, 'SIGINT', 'none', 1_400],
  [7_500, 'SIGINT', 'SIGTERM', 1_500],
  [9_000, 'SIGTERM', 'SIGKILL', never],
  [60_000, 'none', 'SIGKILL', never],
  [9_500, 'SIGKILL', 'none', never],
  // A renewal after SIGINT: nothing more is sent until the next deadline.
  [100, 'SIGINT', 'none', 7_400],
] as [number, FenceStep, FenceStep, number][]) {
  test(`sends ${send} ${sinceRenewalMs} ms after the last renewal when ${sent} was sent`, () => {
    assert.deepEqual(decideFence(sinceRenewalMs, sent, defaultLeaseTimings), { send, recheckInMs })
  })
}

test('invariant 2: a caller that decides again when it is due sends SIGKILL at +9.0 s, and every step at most once', () => {
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 20_000 }), startMs => {
      let sent: FenceStep = 'none'
      const steps: [FenceStep, number][] = []
      for (let nowMs = startMs; nowMs !== never; ) {
        const { send, recheckInMs } = decideFence(nowMs, sent, defaultLeaseTimings)
        if (send !== 'none') {
          steps.push([send, nowMs])
          sent = send
        }
        nowMs += recheckInMs
      }
      const last = steps.at(-1)!
      assert.equal(last[0], 'SIGKILL')
      assert.equal(last[1], Math.max(startMs, 9_000))
      assert.equal(new Set(steps.map(([step]) => step)).size, steps.length)
    }),
  )
})

test('rejects lease timings that do not rise or do not end before the Lease', () => {
  assert.equal(checkLeaseTimings(defaultLeaseTimings), defaultLeaseTimings)
  assert.throws(() => checkLeaseTimings({ ...defaultLeaseTimings, killMs: 10_000 }), /must rise: .* got 2000, 6000, 7500, 10000, 10000/)
})
