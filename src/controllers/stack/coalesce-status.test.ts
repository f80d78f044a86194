import { deepEqual, equal } from 'node:assert/strict'
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

const readyReason = (simulator: Simulator) => simulator.stacks()[0]?.status?.conditions?.find(({ type }) => type === 'Ready')?.reason

for (const [which, prepare] of [
  ['first', (simulator: Simulator) => simulator.put('app', { suspend: true })],
  [
    'next',
    (simulator: Simulator) => {
      simulator.put('app', { suspend: true })
      simulator.put('app', { suspend: false })
      simulator.report('app', 'Succeeded')
      simulator.put('app', { suspend: true })
    },
  ],
] as const) {
  test(`a ${which} Run that waits in the queue is reported when that is allowed, and not at all if it ends before`, () => {
    const simulator = new Simulator()
    prepare(simulator)
    const before = readyReason(simulator)
    simulator.mayReportQueued = false
    simulator.put('app', { suspend: false, variables: { a: 2 } })
    simulator.advance(600_000)
    equal(readyReason(simulator), before)
    equal(simulator.stacks()[0]?.status?.observedGeneration !== simulator.stacks()[0]?.metadata.generation, true)
    const reported = structuredClone(simulator.stacks()[0]?.status)
    simulator.assign('app')
    simulator.advance(reportProgressAfterMs - 1)
    deepEqual(simulator.stacks()[0]?.status, reported)
    simulator.report('app', 'Succeeded')
    equal(readyReason(simulator), 'Applied')

    simulator.put('app', { timeout: '3h', variables: { a: 1 } })
    simulator.advance(60_000)
    equal(readyReason(simulator), 'Applied')
    simulator.mayReportQueued = true
    simulator.settle()
    equal(readyReason(simulator), 'Progressing')
    equal(reportedPhase(simulator), 'Queued')
  })
}

test('a Run that waited unreported and takes longer is reported reportProgressAfterMs after its assignment', () => {
  const simulator = new Simulator()
  simulator.put('app', { suspend: true })
  simulator.mayReportQueued = false
  simulator.put('app', { suspend: false })
  simulator.advance(600_000)
  simulator.assign('app')
  simulator.advance(reportProgressAfterMs)
  equal(reportedPhase(simulator), 'Assigned')
})

test('a Run for another reason than a change of the Stack is reported although reports of waiting Runs are spread', () => {
  const simulator = new Simulator()
  simulator.put('app', {})
  simulator.report('app', 'Succeeded')
  simulator.mayReportQueued = false
  simulator.annotate('app', { requestedRun: 'now' })
  equal(readyReason(simulator), 'Progressing')
})
