import { equal } from 'node:assert/strict'
import { test } from 'node:test'
import { rfc3339 } from '../../kubernetes/object/index.ts'
import { reportProgressAfterMs } from './constants.ts'
import { Simulator } from './simulator.testing.ts'

// `start-of-a-quick-run-is-not-reported.txt` has the start of a Run, crashes and deletions.

const reportedPhase = (simulator: Simulator) => simulator.stacks()[0]?.status?.lastRun?.phase

for (const aheadMs of [0, -3_600_000, 3_600_000]) {
  test(`reports the phase of a Run after reportProgressAfterMs if the clock of its worker is ${aheadMs} ms ahead`, () => {
    const simulator = new Simulator()
    simulator.put('app', {})
    simulator.report('app', 'Applying', { startedAt: rfc3339(simulator.nowMs + aheadMs) })
    equal(reportedPhase(simulator), aheadMs === 0 ? 'Queued' : 'Applying')
    simulator.advance(reportProgressAfterMs)
    equal(reportedPhase(simulator), 'Applying')
  })
}

test('reports the assignment of a Run that waited in the queue after reportProgressAfterMs', () => {
  const simulator = new Simulator()
  simulator.put('app', {})
  simulator.advance(60_000)
  simulator.assign('app')
  equal(reportedPhase(simulator), 'Queued')
  simulator.advance(reportProgressAfterMs - 1)
  equal(reportedPhase(simulator), 'Queued')
  simulator.advance(1)
  equal(reportedPhase(simulator), 'Assigned')
})

test('reports a phase immediately together with another change of the Stack', () => {
  const simulator = new Simulator()
  simulator.put('app', {})
  simulator.report('app', 'Planning', { startedAt: rfc3339(simulator.nowMs) })
  equal(reportedPhase(simulator), 'Queued')
  simulator.put('app', { timeout: '1h' })
  equal(reportedPhase(simulator), 'Planning')
})
