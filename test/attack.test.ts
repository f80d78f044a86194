/** The attacks of `npm run bench -- attack` that take less than a second, on one `oarlock up` with real workers. */
import { deepEqual, ok } from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { type Attack, attacks, NotRunHere, runAttack, Target } from '../bench/attack/index.ts'

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

describe('the outcome of an attack', () => {
  const limit = { sentence: '', gained: ['a', 'b'] }
  const cases: [string, Pick<Attack, 'attempt' | 'limit'>, object][] = [
    [
      'is held if nothing was gained and the controls work',
      {
        attempt: async (_, control) => {
          control(true, 'the owner is allowed')
          return []
        },
      },
      { result: 'held' },
    ],
    ['is broken without a control', { attempt: async () => [] }, { result: 'broken', reason: 'it has no control' }],
    [
      'is broken if one control does not work',
      {
        attempt: async (_, control) => {
          control(true, 'the owner is allowed')
          control(false, 'the owner gets 404')
          return []
        },
      },
      { result: 'broken', reason: 'control: the owner gets 404' },
    ],
    [
      'is the documented limit if exactly that was gained',
      { limit, attempt: async () => ['b', 'a', 'b'] },
      { result: 'documented limit', gained: ['b', 'a'] },
    ],
    [
      'is gained if more than the documented limit was gained',
      { limit, attempt: async () => ['a', 'b', 'c'] },
      { result: 'gained', gained: ['a', 'b', 'c'] },
    ],
    ['is gained if something else was gained', { limit, attempt: async () => ['c'] }, { result: 'gained', gained: ['c'] }],
    [
      'is not run here if the machine cannot show it',
      { attempt: async () => Promise.reject(new NotRunHere('no bwrap')) },
      { result: 'not run here', reason: 'no bwrap' },
    ],
    [
      'is an error if the attempt fails',
      { attempt: async () => Promise.reject(new Error('no answer')) },
      { result: 'error', reason: 'no answer' },
    ],
  ]
  for (const [title, attack, expected] of cases) test(title, async () => deepEqual(await runAttack(attack, {} as Target), expected))
})
