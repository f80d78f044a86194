import { equal } from 'node:assert/strict'
import { test } from 'node:test'
import type { Run } from '../../../api/index.ts'
import type { PlanResult } from '../../engine/index.ts'
import { formatPlan } from './format-run.ts'

const run = (spec: Partial<Run['spec']>) => ({ spec }) as Run
const plan = { add: 0, change: 1, destroy: 2, hasChanges: true } as PlanResult

test('the plan of a refresh is described as changes of the state, not of the resources', () => {
  equal(formatPlan(run({ type: 'Plan' }), plan, 'would be '), '0 would be added, 1 would be changed, 2 would be destroyed')
  const planned = formatPlan(run({ type: 'Plan', planMode: 'Refresh' }), plan, 'would be ')
  equal(planned, '0 would be added, 1 would be changed, 2 would be removed, only in the state')
  equal(formatPlan(run({ type: 'Refresh' }), plan, ''), '0 added, 1 changed, 2 removed, only in the state')
  equal(formatPlan(run({ type: 'Refresh' }), { ...plan, hasChanges: false }, ''), 'no changes')
})
