import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isAcceptanceOverdue } from './acceptance.ts'
import { epochMs, testRun } from './objects.testing.ts'

test('reports a Run that its worker has not accepted for 30 s', () => {
  for (const run of [testRun('r', { worker: 'w' }), testRun('r', { worker: 'w', phase: 'Assigned' })]) {
    assert.equal(isAcceptanceOverdue(run, epochMs + 29_999), false)
    assert.equal(isAcceptanceOverdue(run, epochMs + 30_000), true)
  }
  assert.equal(isAcceptanceOverdue(testRun('r', { worker: 'w', phase: 'Planning' }), epochMs + 99_000), false)
})
