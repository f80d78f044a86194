/** Several dispatchers that share workers, on virtual time: what must hold whatever they do at the same moment. */
import { deepEqual, ok } from 'node:assert/strict'
import { test } from 'node:test'
import { SharedWorkersSimulation } from './support/shared-workers-simulation.ts'

const seeds = 300

test(`with ${seeds} seeds no Run is executed twice or after its rejection, no worker exceeds its slots, and every job ends`, () => {
  for (let seed = 1; seed <= seeds; seed++) {
    const lifecycle = seed % 4 === 0 ? ('OneShot' as const) : ('Warm' as const)
    const options = {
      seed,
      partitions: 2 + (seed % 2),
      workers: 3 + (seed % 5),
      slots: 1 + (seed % 3),
      lifecycle,
      jobs: 40,
      durationMs: 6_000,
    }
    const faults = { load: 0.6 + (seed % 5) / 5, dispatcherCrashes: seed % 3, lostWorkers: seed % 4 }
    const { violations, unfinished } = new SharedWorkersSimulation({ ...options, ...faults }).run()
    deepEqual({ seed, violations, unfinished }, { seed, violations: [], unfinished: 0 })
  }
})

test('at 70 % load less than one Run in a hundred is rejected, and above it some are', t => {
  const busy = { seed: 7, partitions: 2, workers: 60, slots: 1, jobs: 6_000, durationMs: 20_000, dispatcherCrashes: 0, lostWorkers: 0 }
  const moderate = new SharedWorkersSimulation({ ...busy, load: 0.7 }).run()
  const share = moderate.rejected / moderate.runs
  t.diagnostic(`${moderate.rejected} of ${moderate.runs} Runs rejected at 70 % load (${(share * 100).toFixed(2)} %)`)
  deepEqual([moderate.violations, moderate.unfinished, moderate.lost], [[], 0, 0])
  ok(share < 0.01, `${share}`)
  const full = new SharedWorkersSimulation({ ...busy, jobs: 2_000, load: 1.2 }).run()
  t.diagnostic(`${full.rejected} of ${full.runs} Runs rejected at 120 % load`)
  deepEqual([full.violations, full.unfinished], [[], 0])
  // The check above can fail.
  ok(full.rejected > 0)
})

for (const lifecycle of ['OneShot', 'Warm'] as const)
  test(`with few workers of lifecycle ${lifecycle} less than one Run in a hundred is rejected, because one dispatcher is the first`, t => {
    const share = (workers: number, load: number, hasPreference: boolean) => {
      let [rejected, runs] = [0, 0]
      for (let seed = 1; seed <= 20; seed++) {
        const options = { seed, partitions: 2, workers, slots: 1, lifecycle, jobs: 100, durationMs: 5_000, load, hasPreference }
        const result = new SharedWorkersSimulation({ ...options, dispatcherCrashes: 0, lostWorkers: 0 }).run()
        deepEqual({ seed, violations: result.violations, unfinished: result.unfinished }, { seed, violations: [], unfinished: 0 })
        rejected += result.rejected
        runs += result.runs
      }
      return rejected / runs
    }
    for (const workers of [1, 2, 4])
      for (const load of [0.7, 1.2]) {
        const [first, none] = [share(workers, load, true), share(workers, load, false)]
        const percent = (part: number) => `${(part * 100).toFixed(2)} %`
        t.diagnostic(`${workers} workers at ${load * 100} % load: ${percent(first)} rejected; ${percent(none)} without a preference`)
        ok(first < 0.01, `${workers} workers at load ${load}: ${first}`)
        // The check above can fail.
        if (lifecycle === 'OneShot') ok(none > 0.1, `${none}`)
      }
  })

test('with one partition nothing is rejected', () => {
  for (let seed = 1; seed <= 50; seed++) {
    const options = { seed, partitions: 1, workers: 4, slots: 2, jobs: 60, durationMs: 5_000, load: 1.1 }
    const { violations, unfinished, rejected } = new SharedWorkersSimulation({
      ...options,
      dispatcherCrashes: 1,
      lostWorkers: seed % 2,
    }).run()
    deepEqual({ seed, violations, unfinished, rejected }, { seed, violations: [], unfinished: 0, rejected: 0 })
  }
})
