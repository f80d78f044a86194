import { deepEqual, equal } from 'node:assert/strict'
import { test } from 'node:test'
import type { Stack } from '../../api/index.ts'
import type { StackDecision, StackInput, StateCheck } from './decision.ts'
import { StateChecks, stateRecheckMs } from './state-checks.ts'

const missing: StateCheck = { error: { reason: 'StateMissing', message: 'no state' } }

/** Decides about one Stack whose stores answer `answers` one after another; an Error is thrown. `saw` has what each decision saw of the state. */
function harness(answers: (StateCheck | Error)[], status: Stack['status'] = { stateVersion: 3 }, annotations = {}) {
  const saw: (StateCheck | undefined)[] = []
  const expected: number[] = []
  const checks = new StateChecks(async (_, version) => {
    expected.push(version)
    const answer = answers.shift()
    if (answer === undefined || answer instanceof Error) throw answer ?? new Error('checked too often')
    return answer
  })
  const decide = (decision: Partial<StackDecision> = {}, spec: Partial<Stack['spec']> = {}) =>
    checks.decide({ stack: { metadata: { uid: 'uid', annotations }, spec, status } } as StackInput, ({ state }) => {
      saw.push(state)
      return { status: status ?? {}, deleteRuns: [], events: [], ...(state?.error ? {} : decision) }
    })
  return { decide, saw, expected }
}
const createRun = { name: 'app-1', spec: {} } as StackDecision['createRun'] & object

test('a Stack is checked once by each process, and before each Run', async () => {
  const { decide, saw, expected } = harness([{}, {}, missing])
  await decide()
  await decide()
  deepEqual(expected, [3])
  equal((await decide({ createRun })).createRun, createRun)
  equal((await decide({ createRun })).createRun, undefined)
  deepEqual(saw, [undefined, {}, {}, {}, {}, {}, missing])
})

test('a Stack without its state is checked again after a while', async () => {
  const { decide, saw } = harness([missing, missing, {}])
  equal((await decide()).requeueAfterMs, stateRecheckMs)
  equal((await decide({ requeueAfterMs: 1_000_000 })).requeueAfterMs, stateRecheckMs)
  equal((await decide({ requeueAfterMs: 1_000_000 })).requeueAfterMs, 1_000_000)
  deepEqual(saw.at(-1), {})
})

test('a Stack that may have no state is not checked', async () => {
  const { decide, expected } = harness([], {})
  await decide({ createRun })
  deepEqual(expected, [])
})

test('a Stack whose state is not stored here any more has no error of it', async () => {
  const { decide, saw, expected } = harness([missing, missing])
  await decide()
  const external = await decide({ createRun }, { state: 'External' })
  deepEqual([external.createRun, external.requeueAfterMs, saw.at(-1)], [createRun, undefined, undefined])
  await decide()
  deepEqual(
    [expected, saw.slice(-2)],
    [
      [3, 3],
      [undefined, missing],
    ],
  )
})

test('a Stack with an imported state is checked before its first Run, but not while the import is pending', async () => {
  const imported = harness([missing], {}, { 'oarlock.dev/imported-state': 'lineage' })
  equal((await imported.decide({ createRun })).createRun, undefined)
  deepEqual([imported.expected, imported.saw], [[1], [undefined, missing]])
  const pending = harness([], {}, { 'oarlock.dev/imported-state': 'pending:lineage' })
  equal((await pending.decide({ createRun })).createRun, createRun)
  deepEqual(pending.expected, [])
})

test('if the stores do not answer, the Run is created: they check it when it starts', async () => {
  const { decide, saw } = harness([new Error('unavailable'), new Error('unavailable')])
  equal((await decide({ createRun })).createRun, createRun)
  await decide()
  deepEqual(saw, [undefined, undefined])
})
