import { deepEqual, ok } from 'node:assert/strict'
import { test } from 'node:test'
import { simulateClaims } from './support/gateway/claims-simulation.ts'

const seeds = Array.from({ length: 300 }, (_, seed) => seed + 1)

test('a name is in one partition at any time, whatever crashes, waits and differs', () => {
  const runs = seeds.map(seed => simulateClaims(seed))
  deepEqual(
    runs.flatMap(({ violations }) => violations),
    [],
  )
  const total = { created: 0, tooLate: 0, removed: 0, kept: 0, taken: 0 }
  for (const { done } of runs) for (const key of Object.keys(total) as (keyof typeof total)[]) total[key] += done[key]
  deepEqual(
    runs.filter(({ left }) => left),
    [],
    'a claim without its object is left',
  )
  // Every case has happened, else the runs prove nothing.
  for (const [what, count] of Object.entries(total)) ok(count > 100, `${what}: ${count}`)
})

for (const fault of ['removed early', 'without its version', 'created late'] as const)
  test(`the simulation finds what goes wrong when a claim is ${fault}`, () => {
    ok(seeds.some(seed => simulateClaims(seed, fault).violations.length > 0))
  })
