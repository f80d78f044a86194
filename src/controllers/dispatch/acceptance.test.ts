import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { RunPhase } from '../../api/index.ts'
import { isAcceptanceOverdue } from './acceptance.ts'
import { epochMs, testRun } from './objects.testing.ts'
import { makeRunRecord } from './run-record.ts'

test('reports a Run that its worker has not accepted for 30 s', () => {
  const assigned = (phase?: RunPhase) => makeRunRecord(testRun('r', { worker: 'w', ...(phase && { phase }) }))
  for (const run of [assigned(), assigned('Assigned')]) {
    assert.equal(isAcceptanceOverdue(run, epochMs + 29_999), false)
    assert.equal(isAcceptanceOverdue(run, epochMs + 30_000), true)
  }
  assert.equal(isAcceptanceOverdue(assigned('Planning'), epochMs + 99_000), false)
})
