import { deepEqual, equal, ok, throws } from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { Latencies } from './latencies.ts'
import { emptyProfile, parseHollowProfile } from './profile.ts'
import { TimerWheel } from './timer-wheel.ts'

test('a profile interpolates durations between its percentiles', () => {
  const { phases, failureShare, changeShare } = parseHollowProfile({
    phases: { planning: { p0: '1s', p50: '4s', p100: '16s' }, applying: '250ms' },
    failureShare: 0.02,
  })
  deepEqual([0, 0.25, 0.5, 0.75, 1].map(phases.planning), [1_000, 2_000, 4_000, 8_000, 16_000])
  deepEqual([phases.preparing(0.5), phases.applying(0.9), failureShare, changeShare], [0, 250, 0.02, 1])
  equal(parseHollowProfile({ phases: { planning: { p50: '4s', p99: '9s' } } }).phases.planning(0.1), 4_000)
  equal(emptyProfile.phases.applying(0.5), 0)
})

test('rejects an invalid profile with the field, its value and what is allowed', () => {
  throws(() => parseHollowProfile([]), /the profile must be a JSON object, got \[\]/)
  throws(() => parseHollowProfile({ faliureShare: 1 }), /"faliureShare"; allowed are phases, failureShare, changeShare/)
  throws(() => parseHollowProfile({ phases: { plan: '1s' } }), /phases has "plan"; allowed are preparing, planning, applying/)
  throws(() => parseHollowProfile({ phases: { planning: 3 } }), /phases.planning must be a JSON object, got 3/)
  throws(() => parseHollowProfile({ phases: { planning: {} } }), /at least one percentile/)
  throws(() => parseHollowProfile({ phases: { planning: { p101: '1s' } } }), /phases.planning.p101 must be a percentile from p0 to p100/)
  throws(() => parseHollowProfile({ phases: { planning: { p50: '9s', p99: '1s' } } }), /p99 must not be shorter than p50/)
  throws(() => parseHollowProfile({ phases: { planning: { p50: 'soon' } } }), /phases.planning.p50: duration "soon"/)
  throws(() => parseHollowProfile({ failureShare: 2 }), /failureShare 2 must be a number from 0 to 1/)
})

test('each timer fires once in every period, however irregularly the wheel is advanced', () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 50 }), fc.array(fc.integer({ min: 1, max: 900 }), { maxLength: 40 }), (count, steps) => {
      const wheel = new TimerWheel(count, 1_000, 5_000)
      const fired = new Array<number>(count).fill(0)
      let nowMs = 5_000
      for (const step of [...steps, 1]) {
        nowMs += step
        wheel.due(nowMs, (index, dueMs) => {
          fired[index]!++
          ok(dueMs <= nowMs && dueMs > nowMs - step - 1_000 / count - 1, `due at ${dueMs}, now ${nowMs}`)
        })
      }
      const periods = (nowMs - 5_000) / 1_000
      for (const times of fired) ok(times === Math.floor(periods) || times === Math.ceil(periods), `${times} times in ${periods} periods`)
    }),
  )
})

test('after a pause each timer fires once, not once for each period', () => {
  const wheel = new TimerWheel(4, 1_000, 0)
  const fired: number[] = []
  wheel.due(10_500, index => fired.push(index))
  deepEqual(fired.sort(), [0, 1, 2, 3])
})

test('a percentile is at most 4.5% above the exact one', () => {
  fc.assert(
    fc.property(
      fc.array(fc.double({ min: 0.01, max: 100_000, noNaN: true }), { minLength: 1, maxLength: 200 }),
      fc.constantFrom(1, 50, 99, 100),
      (times, percent) => {
        const latencies = new Latencies()
        for (const ms of times) latencies.add(ms)
        const exact = times.toSorted((a, b) => a - b)[Math.max(0, Math.ceil((times.length * percent) / 100) - 1)]!
        const got = latencies.percentile(percent)
        ok(got >= exact * 0.9999 && got <= exact * 1.045, `${got} for ${exact}`)
      },
    ),
  )
  equal(new Latencies().percentile(99), 0)
})
