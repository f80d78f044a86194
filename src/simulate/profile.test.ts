import { deepEqual, ok, throws } from 'node:assert/strict'
import { test } from 'node:test'
import { samplerOf } from './distribution.ts'
import { defaultProfile, ProfileError, parseProfile } from './profile.ts'
import { Random } from './random.ts'

test('what a profile leaves out is as in the default one', () => {
  deepEqual(parseProfile({}), defaultProfile)
  const { price, workerStart } = parseProfile({ price: { perWorkerHour: 0.2 }, workerStart: { fixed: '300ms' } })
  deepEqual(price, { currency: 'USD', perWorkerHour: 0.2, perPodHour: 0.2 })
  deepEqual(workerStart, { fixed: '300ms' })
})

for (const { name, value, says } of [
  { name: 'an unknown field', value: { failures: 0.1 }, says: /profile\.failures: there is no such field/ },
  { name: 'no object', value: [], says: /profile/ },
  { name: 'a share beyond its range', value: { failureShare: 2 }, says: /profile\.failureShare: .*0\.9/ },
  { name: 'a duration without a unit', value: { workerStart: { fixed: '5' } }, says: /profile\.workerStart\.fixed/ },
  { name: 'a spread said twice', value: { workerStart: { fixed: '5s', p50: '1s', p99: '2s' } }, says: /workerStart: say it one way/ },
  { name: 'half a spread', value: { durations: { Change: { p50: '1s' } } }, says: /durations\.Change: .*p99 is missing/ },
  {
    name: 'p99 below p50',
    value: { workerStart: { p50: '3s', p99: '2s' } },
    says: /workerStart\.p99 2s: must not be less than p50 \(3s\)/,
  },
  { name: 'quantiles without ends', value: { workerStart: { quantiles: { 0.5: '1s', 1: '2s' } } }, says: /shares 0 .*and 1/ },
  { name: 'quantiles that fall', value: { workerStart: { quantiles: { 0: '3s', 0.5: '1s', 1: '4s' } } }, says: /0\.5 is shorter than 0/ },
  { name: 'a share that is none', value: { workerStart: { quantiles: { 0: '1s', p99: '2s', 1: '4s' } } }, says: /"p99" is not a share/ },
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

test('times are drawn as the profile says: median and 99th percentile, or straight lines between quantiles', () => {
  const draw = (spread: Parameters<typeof samplerOf>[0]) => {
    const random = new Random(1)
    const sampler = samplerOf(spread)
    return Array.from({ length: 20_000 }, () => sampler(random)).sort((a, b) => a - b)
  }
  const isNear = (got: number | undefined, expected: number) =>
    ok(got && Math.abs(got / expected - 1) < 0.05, `${got}, expected ${expected}`)
  const lognormal = draw({ p50: '10s', p99: '60s' })
  isNear(lognormal[10_000], 10_000)
  isNear(lognormal[19_800], 60_000)
  const quantiles = draw({ quantiles: { 0: '1s', 0.5: '3s', 1: '13s' } })
  isNear(quantiles[0], 1_000)
  isNear(quantiles[10_000], 3_000)
  isNear(quantiles[15_000], 8_000)
})
