import { parseArgs } from 'node:util'
import { simulateFaults } from '../src/kubernetes/controller/sharding/shard-simulation.testing.ts'
import type { Bench } from './run.ts'

/** `npm run bench -- shard-simulation [--seeds 10000] [--from 0]`: histories of faults on virtual time; fails if one violates the guarantee. */
export async function bench(args: string[]): Promise<Bench> {
  const { values } = parseArgs({ args, strict: false, options: { seeds: { type: 'string' }, from: { type: 'string' } } })
  const seeds = Number(values.seeds ?? 10_000)
  const from = Number(values.from ?? 0)
  const startedMs = performance.now()
  const violations: string[] = []
  let calls = 0
  let late = 0
  let writes = 0
  for (let seed = from; seed < from + seeds; seed++) {
    const simulation = simulateFaults(seed)
    calls += simulation.calls
    late += simulation.lateCalls
    writes += simulation.writes
    if (simulation.violations.length > 0) violations.push(`seed ${seed}: ${simulation.violations[0]}`)
  }
  for (const violation of violations.slice(0, 10)) console.error(violation)
  return {
    title: 'Simulation of a ring',
    about:
      'Kills, pauses, cuts, clock jumps, late watches, lost responses and deleted Leases at 2 to 5 members (docs/sharding.md, "Guarantee").',
    rows: [
      {
        seeds,
        'violating seeds': violations.length,
        'calls of reconciles': calls,
        'late calls of paused processes': late,
        'writes of Leases': writes,
        seconds: Math.round((performance.now() - startedMs) / 1_000),
      },
    ],
    failed: violations.length > 0,
  }
}
