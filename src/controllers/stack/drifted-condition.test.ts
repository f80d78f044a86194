import { deepEqual, equal } from 'node:assert/strict'
import { test } from 'node:test'
import type { Condition } from '../../kubernetes/object/index.ts'
import { presentDrifted } from './drifted-condition.ts'

const drifted = (status: Condition['status'], reason: string): Condition => ({
  ...{ type: 'Drifted', status, reason, message: 'm' },
  lastTransitionTime: '2026-01-01T00:00:00Z',
})

test('a status of an earlier version has the present reason after an upgrade', () => {
  deepEqual(presentDrifted([drifted('False', 'InSync')]), drifted('False', 'NoDrift'))
  for (const condition of [drifted('True', 'DriftFound'), drifted('Unknown', 'ApplyIncomplete')])
    deepEqual(presentDrifted([condition]), condition)
  equal(presentDrifted([]), undefined)
})
