import assert from 'node:assert/strict'
import { test } from 'node:test'
import { rfc3339 } from '../../kubernetes/object/index.ts'
import { reportProgressAfterMs } from './constants.ts'
import { Simulator } from './simulator.testing.ts'

const reportedPhase = (simulator: Simulator) => simulator.stacks()[0]?.status?.lastRun?.phase

test('reports the phase of a Run after reportProgressAfterMs, however wrong the clock of its worker is', () => {
  for (const aheadMs of [0, -3_600_000, 3_600_000]) {
    const simulator = new Simulator()
    simulator.put('app', {})
    simulator.report('app', 'Applying', { startedAt: rfc3339(simulator.nowMs + aheadMs) })
    assert.equal(reportedPhase(simulator), aheadMs === 0 ? 'Queued' : 'Applying')
    simulator.advance(reportProgressAfterMs)
    assert.equal(reportedPhase(simulator), 'Applying', `the worker is ${aheadMs} ms ahead`)
  }
})
