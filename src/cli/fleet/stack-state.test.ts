import { equal } from 'node:assert/strict'
import { test } from 'node:test'
import type { Stack } from '../../api/index.ts'
import { stackMessage, stackState } from '../../api/index.ts'
import { makeStack } from './fleet.testing.ts'

type Condition = NonNullable<NonNullable<Stack['status']>['conditions']>[number]
const condition = (type: string, status: Condition['status'], reason: string): Condition => ({
  type,
  status,
  reason,
  message: `${type} ${reason}`,
  lastTransitionTime: '2026-01-01T00:00:00Z',
})

// One Stack of each state in `api/stack-conditions.ts`.
for (const [state, conditions] of [
  ['Ready', [condition('Ready', 'True', 'Applied'), condition('Drifted', 'False', 'NoDrift')]],
  ['Drifted', [condition('Ready', 'False', 'Drifted'), condition('Drifted', 'True', 'DriftFound')]],
  ['Drifted', [condition('Ready', 'False', 'ApplyIncomplete'), condition('Drifted', 'Unknown', 'ApplyIncomplete')]],
  [
    'AwaitingApproval',
    [
      condition('Ready', 'False', 'AwaitingApproval'),
      condition('Drifted', 'True', 'DriftFound'),
      condition('AwaitingApproval', 'True', 'Pending'),
    ],
  ],
  ['Working', [condition('Ready', 'False', 'Suspended')]],
  [
    'Working',
    [
      condition('Ready', 'False', 'Progressing'),
      condition('Reconciling', 'True', 'Progressing'),
      condition('Drifted', 'True', 'DriftFound'),
    ],
  ],
  ['Failing', [condition('Ready', 'False', 'PersistentFailure'), condition('Reconciling', 'True', 'PersistentFailure')]],
  ['Failed', [condition('Ready', 'False', 'RetriesExhausted'), condition('Stalled', 'True', 'RetriesExhausted')]],
  ['PlanRejected', [condition('Ready', 'False', 'PlanRejected'), condition('Stalled', 'True', 'PlanRejected')]],
  ['EngineNotFound', [condition('Ready', 'False', 'EngineNotFound'), condition('Stalled', 'True', 'EngineNotFound')]],
] as const) {
  const [ready] = conditions
  test(`a Stack with Ready=${ready.status} ${ready.reason} is ${state}, and its message is that of Ready or of a condition with the same reason`, () => {
    const stack = makeStack('a', { conditions: [...conditions] })
    equal(stackState(stack), state)
    equal(stackMessage(stack).reason, ready.reason)
  })
}
