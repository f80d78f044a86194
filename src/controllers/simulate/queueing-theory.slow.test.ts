import { ok } from 'node:assert/strict'
import { test } from 'node:test'
import type { DurationDistribution } from '../../api/index.ts'
import { parseSimulationProfile, simulateFleet } from './index.ts'

/**
 * Simulates Poisson arrivals of changes of many Stacks with a constant number of workers, for which queueing theory has formulas.
 * @returns the mean wait in seconds.
 */
function simulatedWait(options: {
  workers: number
  utilization: number
  meanSeconds: number
  duration: DurationDistribution
  days: number
}): number {
  const { workers, utilization, meanSeconds, duration, days } = options
  // Enough Stacks that one hardly ever changes again while its Run is queued, which would not be a new arrival.
  const stacks = 10_000
  const perDay = (utilization * workers * 86_400) / meanSeconds
  const profile = parseSimulationProfile({
    phases: { applying: duration },
    changesPerStackPerDay: perDay / stacks,
    stacksPerChange: 1,
    changesByHour: Array.from({ length: 24 }, () => 1),
    failureShare: 0,
    workerStart: '0s',
  })
  const fleet = { stacks, intervalMs: undefined, profile, hours: 24 * days, seed: 7 }
  const result = simulateFleet(fleet, { max: workers, min: workers, lifecycle: 'Warm' })
  ok(Math.abs(result.utilization - utilization) < 0.02, `utilization ${result.utilization}, expected ${utilization}`)
  return result.wait.all.meanMs / 1_000
}

function isNear(got: number, expected: number, tolerance: number): void {
  ok(Math.abs(got / expected - 1) <= tolerance, `mean wait ${got} s, expected ${expected} s ± ${tolerance * 100}%`)
}

/** The mean wait of M/M/c in units of the mean service time, by the Erlang C formula. */
function erlangWait(c: number, rho: number): number {
  let term = 1
  let sum = 1
  for (let k = 1; k < c; k++) {
    term *= (c * rho) / k
    sum += term
  }
  const last = (term * c * rho) / c / (1 - rho)
  return last / (sum + last) / (c * (1 - rho))
}

test('M/D/1: the mean wait with constant service times follows the Pollaczek–Khinchine formula', () => {
  const got = simulatedWait({ workers: 1, utilization: 0.7, meanSeconds: 60, duration: '60s', days: 80 })
  isNear(got, (0.7 * 60) / (2 * 0.3), 0.06)
})

test('M/G/1: the mean wait with log-uniform service times follows the Pollaczek–Khinchine formula', () => {
  // Log-uniform from 20 s to 180 s.
  const mean = (180 - 20) / Math.log(9)
  const meanOfSquares = (180 ** 2 - 20 ** 2) / (2 * Math.log(9))
  const duration = { p0: '20s', p100: '180s' }
  const got = simulatedWait({ workers: 1, utilization: 0.6, meanSeconds: mean, duration, days: 80 })
  isNear(got, ((0.6 / mean) * meanOfSquares) / (2 * 0.4), 0.08)
})

for (const { workers, utilization } of [
  { workers: 4, utilization: 0.8 },
  { workers: 10, utilization: 0.9 },
]) {
  test(`M/D/${workers} at ${utilization}: the mean wait follows the Cosmetatos approximation, which is within 2% of the exact value`, () => {
    const got = simulatedWait({ workers, utilization, meanSeconds: 60, duration: '60s', days: 200 / workers })
    const c = workers
    const rho = utilization
    const correction = 1 + ((1 - rho) * (c - 1) * (Math.sqrt(4 + 5 * c) - 2)) / (16 * rho * c)
    isNear(got, 60 * 0.5 * erlangWait(c, rho) * correction, 0.08)
  })
}
