import { deepEqual, ok, throws } from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { ProfileError } from '../../api/index.ts'
import { defaultProfile, parseProfile, serviceTimesOf } from './profile.ts'
import { SeededRandom } from './seeded-random.ts'

test('what a profile leaves out is as in the default one; of its phases, it takes no time', () => {
  deepEqual(parseProfile({}), defaultProfile)
  const { price, workerStart, phases } = parseProfile({ price: { perWorkerHour: 0.2 }, workerStart: '300ms', phases: { planning: '5s' } })
  deepEqual(price, { currency: 'USD', perWorkerHour: 0.2, perPodHour: 0.2 })
  deepEqual([workerStart, phases.planning, phases.applying], ['300ms', '5s', undefined])
})

test('the profile of docs/simulate.md is the default one, and that of hollow workers can be read', () => {
  const [, example = ''] = /```json\n(\{.*?\n\})\n```/s.exec(readFileSync('docs/simulate.md', 'utf8')) ?? []
  deepEqual(parseProfile(JSON.parse(example)), defaultProfile)
  deepEqual(parseProfile(JSON.parse(readFileSync('examples/hollow/profile.json', 'utf8'))).changeShare, 0.3)
})

for (const { name, value, says } of [
  { name: 'an unknown field', value: { failures: 0.1 }, says: /profile\.failures: there is no such field/ },
  { name: 'an unknown phase', value: { phases: { waiting: '1s' } }, says: /profile\.phases\.waiting: there is no such field/ },
  { name: 'no object', value: [], says: /profile/ },
  { name: 'a share beyond its range', value: { failureShare: 2 }, says: /profile\.failureShare: .*1/ },
  { name: 'a duration without a unit', value: { workerStart: '5' }, says: /profile\.workerStart: duration "5" must be numbers with units/ },
  {
    name: 'a percentile that is none',
    value: { phases: { applying: { median: '1s' } } },
    says: /profile\.phases\.applying\.median must be a perc/,
  },
  {
    name: 'percentiles that fall',
    value: { workerStart: { p50: '3s', p99: '2s' } },
    says: /workerStart: p99 must not be shorter than p50/,
  },
  { name: 'hours without changes', value: { changesByHour: Array.from({ length: 24 }, () => 0) }, says: /one weight at least/ },
  { name: '23 hours', value: { changesByHour: Array.from({ length: 23 }, () => 1) }, says: /profile\.changesByHour/ },
]) {
  test(`a profile is refused with the field that is wrong: ${name}`, () => {
    throws(
      () => parseProfile(value),
      (error: unknown) => error instanceof ProfileError && says.test(error.message),
    )
  })
}

test('a drift check looks; a change looks and, as often as the profile says, applies', () => {
  const profile = parseProfile({
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
  // A quarter from the end in the upper half of those that apply: in the middle of 40 s and 160 s on a logarithmic axis.
  isNear(0.875, 91_000)
})
