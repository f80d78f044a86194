/** The attacks of `npm run bench -- attack` that take less than a second, on one `oarlock up` with real workers. */
import { deepEqual, ok } from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { attacks, runAttack, Target } from '../bench/attack/index.ts'

describe('attacks on oarlock up', () => {
  let target: Target
  before(async () => {
    target = await Target.start()
  })
  after(() => target?.close())

  for (const attack of attacks.filter(({ slow }) => !slow))
    test(`${attack.name}, by ${attack.actor}, gains nothing${attack.limit ? ' that is not documented' : ''}`, async t => {
      const outcome = await runAttack(attack, target)
      if (outcome.result === 'not run here') return t.skip(outcome.reason)
      if (outcome.result !== 'documented limit') deepEqual(outcome, { result: 'held' })
      ok(target.isRunning, 'oarlock up is running')
    })
})
