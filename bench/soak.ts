/** Memory growth of a controller with faults in 1 % of its requests, for `--minutes N` (default 10). */
import { parseArgs } from 'node:util'
import { growthPerRound, soak } from '../test/support/soak.ts'
import type { Bench } from './run.ts'

const warmUpRounds = 5

export async function bench(args: string[]): Promise<Bench> {
  const { values } = parseArgs({ args, strict: false, allowPositionals: true, options: { minutes: { type: 'string', default: '10' } } })
  const minutes = Number(values.minutes)
  const untilMs = performance.now() + minutes * 60_000
  const { rounds, reconciles, faults, resourcesBefore, resourcesAfter, warnings } = await soak(
    done => performance.now() > untilMs && done.length > warmUpRounds + 2,
  )
  const settled = rounds.slice(warmUpRounds)
  const heapMb = settled.map(round => round.heapMb)
  const rows: Bench['rows'] = [
    {
      minutes,
      rounds: rounds.length,
      reconciles,
      faults,
      'heap first, MB': heapMb[0] ?? 0,
      'heap last, MB': heapMb.at(-1) ?? 0,
      // Growth at the start only (compiled code, bounded caches) is not a leak; growth in the second half is.
      'growth per 100 rounds, MB': growthPerRound(heapMb) * 100,
      'in the second half': growthPerRound(heapMb.slice(heapMb.length >> 1)) * 100,
      'open resources, most': Math.max(...settled.map(({ resources }) => resources)),
      'before and after': `${resourcesBefore} and ${resourcesAfter}`,
      'abort listeners, most': Math.max(...settled.map(({ listeners }) => listeners)),
      warnings: warnings.length,
    },
  ]
  return {
    title: 'Soak',
    about:
      '100 objects a round: made, changed, reconciled, deleted; drops, lost answers, delays, 409, 410, 429, 500, doubled writes, repeated and late events, cuts.',
    rows,
  }
}
