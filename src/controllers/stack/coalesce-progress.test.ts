import assert from 'node:assert/strict'
import { test } from 'node:test'
import { rfc3339 } from '../../kubernetes/object/index.ts'
import { reportProgressAfterMs } from './limits.ts'
import { Simulator } from './simulator.testing.ts'

const told = (simulator: Simulator) => simulator.stacks()[0]?.status?.lastRun?.phase

test('how far a Run has come is told after a moment, however far the clock of its worker is off', () => {
  for (const aheadMs of [0, -3_600_000, 3_600_000]) {
    const simulator = new Simulator()
    simulator.put('app', {})
    simulator.report('app', 'Applying', { startedAt: rfc3339(simulator.nowMs + aheadMs) })
    assert.equal(told(simulator), aheadMs === 0 ? 'Queued' : 'Applying')
    simulator.advance(reportProgressAfterMs)
    assert.equal(told(simulator), 'Applying', `the worker is ${aheadMs} ms ahead`)
  }
})
