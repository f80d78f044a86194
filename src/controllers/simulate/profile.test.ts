import { deepEqual, ok, throws } from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { ProfileError } from '../../api/index.ts'
import { defaultProfile, parseSimulationProfile, serviceTimesOf } from './profile.ts'
import { SeededRandom } from './seeded-random.ts'

test('omitted fields have their default; omitted phases take no time', () => {
  deepEqual(parseSimulationProfile({}), defaultProfile)
  const { price, workerStart, phases } = parseSimulationProfile({
    price: { perWorkerHour: 0.2 },
    workerStart: '300ms',
    phases: { planning: '5s' },
  })
  deepEqual(price, { currency: 'USD', perWorkerHour: 0.2, perPodHour: 0.2 })
  deepEqual([workerStart, phases.planning, phases.applying], ['300ms', '5s', undefined])
})

test('the profile in docs/simulate.md is the default, and the profile of hollow workers is valid', () => {
  const [, example = ''] = /```json\n(\{.*?\n\})\n```/s.exec(readFileSync('docs/simulate.md', 'utf8')) ?? []
  deepEqual(parseSimulationProfile(JSON.parse(example)), defaultProfile)
  deepEqual(parseSimulationProfile(JSON.parse(readFileSync('examples/hollow/profile.json', 'utf8'))).changeShare, 0.3)
})

for (const { name, value, error: expected } of [
  { name: 'an unknown field', value: { failures: 0.1 }, error: /profile\.failures: unknown field/ },
  { name: 'an unknown phase', value: { phases: { waiting: '1s' } }, error: /profile\.phases\.waiting: unknown field/ },
  { name: 'not an object', value: [], error: /profile/ },
  { name: 'a share out of range', value: { failureShare: 2 }, error: /profile\.failureShare: .*1/ },
  {
    name: 'a duration without a unit',
    value: { workerStart: '5' },
    error: /profile\.workerStart: duration "5" must be numbers with units/,
  },
  {
    name: 'an unknown percentile',
    value: { phases: { applying: { median: '1s' } } },
    error: /profile\.phases\.applying\.median must be a perc/,
  },
  {
    name: 'decreasing percentiles',
    value: { workerStart: { p50: '3s', p99: '2s' } },
    error: /workerStart: p99 must not be shorter than p50/,
  },
  { name: 'hours without changes', value: { changesByHour: Array.from({ length: 24 }, () => 0) }, error: /at least one weight/ },
  { name: '23 hours', value: { changesByHour: Array.from({ length: 23 }, () => 1) }, error: /profile\.changesByHour/ },
]) {
  test(`rejects a profile and names the invalid field: ${name}`, () => {
    throws(
      () => parseSimulationProfile(value),
      (error: unknown) => error instanceof ProfileError && expected.test(error.message),
    )
  })
}

test('a drift check plans; a change plans, and applies with the probability changeShare', () => {
  const profile = parseSimulationProfile({
    phases: { preparing: '1s', planning: '10s', applying: { p0: '20s', p50: '40s', p100: '160s' } },
    changeShare: 0.5,
  })
  const { DriftCheck, Change } = serviceTimesOf(profile)
  const { next } = new SeededRandom(1)
  deepEqual(DriftCheck(next), 11_000)
  const times = Array.from({ length: 20_000 }, () => Change(next)).sort((a, b) => a - b)
  const isNear = (share: number, expected: number) => {
    const got = times[Math.floor(share * times.length)] ?? 0
    ok(Math.abs(got / expected - 1) < 0.05, `${got}, expected ${expected}`)
  }
  isNear(0.25, 11_000)
  isNear(0.75, 51_000)
  // The third quartile of the changes that apply: the geometric mean of 40 s and 160 s.
  isNear(0.875, 91_000)
})
