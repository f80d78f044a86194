import { equal } from 'node:assert/strict'
import { describe, test } from 'node:test'
import { annotations, type Run, type Stack } from '../../api/index.ts'
import { isRelevantToItsStack, needsReconcile } from './watch-predicates.ts'

const run = (status: Partial<Run['status']>, spec: Partial<Run['spec']> = {}, metadata: Partial<Run['metadata']> = {}): Run =>
  ({ metadata: { name: 'app-1', uid: 'u', ...metadata }, spec, status }) as Run

const applying = run({ phase: 'Applying' }, { workerName: 'w1' })

describe('a change of a Stack reconciles it', () => {
  const stack = (metadata: Partial<Stack['metadata']>) =>
    ({ metadata: { name: 'app', uid: 'u', generation: 1, ...metadata }, spec: {} }) as Stack
  for (const [key, isRelevant] of [
    ['requestedRun', true],
    ['approvedPlan', true],
    ['destroyPlan', true],
    ['destroySource', true],
    ['changedBy', false],
  ] as const)
    test(`when its annotation ${annotations[key]} changes: ${isRelevant}`, () => {
      const now = stack({ annotations: { [annotations[key]]: 'x' } })
      equal(needsReconcile({ type: 'updated', old: stack({}), object: now }), isRelevant)
    })
})

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
