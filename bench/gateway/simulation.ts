import { simulateMerge } from '../../src/gateway/merge-simulation.testing.ts'
import { simulateSharedWatch } from '../../src/gateway/shared-simulation.testing.ts'
import { simulateClaims } from '../../test/support/gateway/claims-simulation.ts'
import type { Bench } from '../run.ts'

/** What each simulation does with one seed; it throws if a guarantee is broken. */
const simulations: Readonly<Record<string, (seed: number) => number>> = {
  'merged log: every event once, in order': simulateMerge,
  'shared watches: every cache is the list at its version': seed => simulateSharedWatch(seed).joins,
  'claims: a name is in one partition': seed => {
    const { violations, done, left } = simulateClaims(seed)
    if (violations.length > 0 || left) throw new Error(violations[0] ?? 'a claim without its object is left')
    return done.created
  },
}

/** The simulations of `npm test` with many more seeds. */
export function simulation({ seeds }: { readonly seeds: number }): Bench {
  let failed = false
  const rows = Object.entries(simulations).map(([what, simulate]) => {
    const startMs = performance.now()
    let happened = 0
    let violation = 'none'
    for (let seed = 1; seed <= seeds && violation === 'none'; seed++) {
      try {
        happened += simulate(seed)
      } catch (error) {
        violation = `seed ${seed}: ${(error as Error).message}`
        failed = true
      }
    }
    const seconds = Math.round((performance.now() - startMs) / 1_000)
    return { what, seeds, 'events, joins, creations': happened, seconds, violation }
  })
  return {
    title: 'Simulations',
    about: 'Crashes, delays and clocks that differ, on virtual time; the set of partitions does not change.',
    rows,
    failed,
  }
}
