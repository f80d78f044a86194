import { ok } from 'node:assert/strict'
import { test } from 'node:test'
import type { DurationDistribution } from '../../api/index.ts'
import { parseProfile, simulateFleet } from './index.ts'

/**
 * A Poisson stream of changes of many Stacks, workers that are there all the time: what queueing theory has formulas for.
 * Returns the mean wait in seconds.
 */
function simulatedWait(options: {
  workers: number
  utilisation: number
  meanSeconds: number
  duration: DurationDistribution
  days: number
}): number {
  const { workers, utilisation, meanSeconds, duration, days } = options
  // So many that hardly ever one changes again while it waits, which would not be a new Run.
  const stacks = 10_000
  const perDay = (utilisation * workers * 86_400) / meanSeconds
  const profile = parseProfile({
    phases: { applying: duration },
    changesPerStackPerDay: perDay / stacks,
    stacksPerChange: 1,
    changesByHour: Array.from({ length: 24 }, () => 1),
    failureShare: 0,
    workerStart: '0s',
  })
  const fleet = { stacks, intervalMs: undefined, profile, hours: 24 * days, seed: 7 }
  const result = simulateFleet(fleet, { max: workers, min: workers, lifecycle: 'Warm' })
  ok(Math.abs(result.utilization - utilisation) < 0.02, `utilisation ${result.utilization}, expected ${utilisation}`)
  return result.wait.all.meanMs / 1_000
}

function isNear(got: number, expected: number, tolerance: number): void {
  ok(Math.abs(got / expected - 1) <= tolerance, `mean wait ${got} s, theory says ${expected} s: more than ${tolerance * 100}% apart`)
}

/** The mean wait of M/M/c in units of the mean service time (A. K. Erlang, 1917). */
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

test('M/D/1: one worker, Runs of one length: the mean wait is that of Pollaczek and Khinchine', () => {
  const got = simulatedWait({ workers: 1, utilisation: 0.7, meanSeconds: 60, duration: '60s', days: 80 })
  isNear(got, (0.7 * 60) / (2 * 0.3), 0.06)
})

test('M/G/1: Runs of many lengths wait longer, as much as Pollaczek and Khinchine say', () => {
  // Evenly on a logarithmic axis from 20 s to 180 s.
  const mean = (180 - 20) / Math.log(9)
  const meanOfSquares = (180 ** 2 - 20 ** 2) / (2 * Math.log(9))
  const duration = { p0: '20s', p100: '180s' }
  const got = simulatedWait({ workers: 1, utilisation: 0.6, meanSeconds: mean, duration, days: 80 })
  isNear(got, ((0.6 / mean) * meanOfSquares) / (2 * 0.4), 0.08)
})

for (const { workers, utilisation } of [
  { workers: 4, utilisation: 0.8 },
  { workers: 10, utilisation: 0.9 },
]) {
  test(`M/D/${workers} at ${utilisation}: the mean wait is that of Cosmetatos' approximation, which is within 2% of the exact one`, () => {
    const got = simulatedWait({ workers, utilisation, meanSeconds: 60, duration: '60s', days: 200 / workers })
    const c = workers
    const rho = utilisation
    const correction = 1 + ((1 - rho) * (c - 1) * (Math.sqrt(4 + 5 * c) - 2)) / (16 * rho * c)
    isNear(got, 60 * 0.5 * erlangWait(c, rho) * correction, 0.08)
  })
}
