import { equal } from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Run } from '../../api/index.ts'
import { isRelevantToItsStack } from './watch-predicates.ts'

const run = (status: Partial<Run['status']>, spec: Partial<Run['spec']> = {}, metadata: Partial<Run['metadata']> = {}): Run =>
  ({ metadata: { name: 'app-1', uid: 'u', ...metadata }, spec, status }) as Run

const applying = run({ phase: 'Applying' }, { workerName: 'w1' })

describe('a change of a Run reconciles its Stack', () => {
  for (const [what, now, isRelevant] of [
    ['its phase changes', run({ phase: 'Succeeded' }, { workerName: 'w1' }), true],
    ['it is canceled', run({ phase: 'Applying' }, { workerName: 'w1', cancel: true }), true],
    ['its message changes', run({ phase: 'Applying', message: 'm' }, { workerName: 'w1' }), true],
    ['its progress changes', run({ phase: 'Applying', progress: { done: 1, total: 2 } }, { workerName: 'w1' }), false],
    ['it is marked for deletion', run({ phase: 'Applying' }, { workerName: 'w1' }, { deletionTimestamp: 'now' }), false],
  ] as const) {
    test(`when ${what}: ${isRelevant}`, () => equal(isRelevantToItsStack({ type: 'updated', old: applying, object: now }), isRelevant))
  }
  test('when it is assigned', () =>
    equal(isRelevantToItsStack({ type: 'updated', old: run({ phase: 'Applying' }), object: applying }), true))
  test('when it is deleted, even after it has ended: the Stack is no longer Stalled by a canceled Run', () =>
    equal(isRelevantToItsStack({ type: 'deleted', object: run({ phase: 'Canceled' }) }), true))
})
