/** `npm run bench -- attack`: attacks on a running `oarlock up` with real workers, one row each. */
import { parseArgs } from 'node:util'
import { type Attack, attacks, type Outcome, runAttack, Target } from './attack/index.ts'
import type { Bench } from './run.ts'

export async function bench(args: string[]): Promise<Bench> {
  const { only } = parseArgs({ args, strict: false, options: { only: { type: 'string' } } }).values
  const selected = attacks.filter(({ name }) => typeof only !== 'string' || name.includes(only))
  if (selected.length === 0)
    throw new RangeError(`no attack has ${JSON.stringify(only)} in its name; names are ${attacks.map(({ name }) => name).join(', ')}`)
  const rows: Bench['rows'] = []
  let target = await Target.start()
  try {
    for (const attack of selected) {
      const startedAt = performance.now()
      const outcome = await runAttack(attack, target)
      rows.push({ ...rowOf(attack, outcome), s: Math.round(performance.now() - startedAt) / 1_000 })
      console.error(`${attack.name}: ${rows.at(-1)?.result}`)
      // What an attack has ended is started again for the next one.
      if (!target.isRunning) {
        await target.close()
        target = await Target.start()
      }
    }
  } finally {
    await target.close()
  }
  const failed = rows.filter(({ result }) => /^(gained|broken|error)/.test(String(result)))
  return {
    title: 'Attacks on oarlock up with real workers',
    about:
      'held: nothing was gained. documented limit: SECURITY.md lists exactly this as not protected. broken: the attack does not work where it is allowed, so it proves nothing. gained, broken and error fail the bench.',
    rows,
    failed: failed.length > 0,
  }
}

function rowOf({ name, actor, promise }: Attack, outcome: Outcome) {
  const { result } = outcome
  const detail = 'gained' in outcome ? outcome.gained.join('; ') : 'reason' in outcome ? outcome.reason : ''
  return { attack: name, actor, promise, result: detail ? `${result}: ${detail}` : result }
}
