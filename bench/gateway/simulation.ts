import { simulateMerge } from '../../src/gateway/watch/merge-simulation.testing.ts'
import { simulateSharedWatch } from '../../src/gateway/watch/shared-simulation.testing.ts'
import { simulateClaims } from '../../test/support/gateway/claims-simulation.ts'
import { simulateMapChanges } from '../../test/support/gateway/map-simulation.ts'
import type { Bench } from '../run.ts'

type Outcome = { readonly happened: number; readonly violations: readonly string[] }

const passing =
  (simulate: (seed: number) => number) =>
  async (seed: number): Promise<Outcome> => {
    try {
      return { happened: simulate(seed), violations: [] }
    } catch (error) {
      return { happened: 0, violations: [`failed: seed ${seed}: ${(error as Error).message}`] }
    }
  }

const mapChanges = async (seed: number): Promise<Outcome> => {
  const { violations, counts } = await simulateMapChanges(seed)
  return { happened: counts.mapChanges, violations: violations.map(({ kind, text }) => `${kind}: ${text.slice(0, 160)}`) }
}

/** What each simulation does with one seed. */
const simulations: Readonly<Record<string, (seed: number) => Promise<Outcome>>> = {
  'merged log: every event once, in order': passing(simulateMerge),
  'shared watches: every cache is the list at its version': passing(seed => simulateSharedWatch(seed).joins),
  'claims: a name is in one partition': passing(seed => {
    const { violations, done, left } = simulateClaims(seed)
    if (violations.length > 0 || left) throw new Error(violations[0] ?? 'a claim without its object is left')
    return done.created
  }),
  'map changes: no write lost or doubled, versions rise, every list and cache is complete': mapChanges,
}

/** The simulations of `npm test` with many more seeds. */
export async function simulation({ seeds }: { readonly seeds: number }): Promise<Bench> {
  const rows: Bench['rows'] = []
  let failed = false
  for (const [what, simulate] of Object.entries(simulations)) {
    const startMs = performance.now()
    let happened = 0
    /** By the kind of the first violation of a seed. */
    const kinds = new Map<string, number>()
    let first = ''
    for (let seed = 1; seed <= seeds; seed++) {
      const outcome = await simulate(seed)
      happened += outcome.happened
      const [violation] = outcome.violations
      if (violation === undefined) continue
      const [kind = ''] = violation.split(':', 1)
      kinds.set(kind, (kinds.get(kind) ?? 0) + 1)
      first ||= violation
      failed = true
    }
    const seconds = Math.round((performance.now() - startMs) / 1_000)
    rows.push({
      what,
      seeds,
      'events, joins, creations, changes': happened,
      seconds,
      'seeds with violations': [...kinds].map(([kind, count]) => `${kind} ${count}`).join(', ') || 'none',
      first,
    })
  }
  const about = 'Crashes, delays and clocks that differ, and changes of the partitions, on virtual time.'
  return { title: 'Simulations', about, rows, failed }
}
