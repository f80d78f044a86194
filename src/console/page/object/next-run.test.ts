import { equal } from 'node:assert/strict'
import { test } from 'node:test'
import { nextRunReason, type RunCauses } from './next-run.ts'

const awaiting = { conditions: [{ type: 'AwaitingApproval', status: 'True' }] }
const cases: readonly (readonly [name: string, stack: RunCauses, activeRun: string | undefined, want: string | undefined])[] = [
  ['nothing while a Run is active', { spec: { suspend: true } }, 'a-1', undefined],
  ['none while it is suspended', { spec: { suspend: true }, status: awaiting }, undefined, 'none starts while the Stack is suspended'],
  ['the approval', { status: awaiting }, undefined, 'when a user has approved the plan'],
  ['a retry', { status: { failures: 2, nextRunAt: '2026-01-01T00:00:00Z' } }, undefined, 'a retry after 2 failed Runs'],
  ['no retry', { status: { failures: 1 } }, undefined, 'none after 1 failed Run, until the Stack, its source or its inputs change'],
  ['a check that reports', { spec: { drift: 'Report' }, status: { nextRunAt: 'x' } }, undefined, 'a check that reports drift'],
  ['a check that corrects', { status: { nextRunAt: 'x' } }, undefined, 'a check that corrects drift'],
  ['a change', { status: {} }, undefined, 'when the Stack, its source or its inputs change, or a user requests one'],
]
for (const [name, stack, activeRun, want] of cases) test(`the next Run: ${name}`, () => equal(nextRunReason(stack, activeRun), want))
