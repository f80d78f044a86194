import { deepEqual, equal } from 'node:assert/strict'
import { test } from 'node:test'
import type { Run } from '../../api/index.ts'
import { RunAssignments } from './run-assignments.ts'

const runOf = (name: string, more: { workerName?: string; phase?: string; deletionTimestamp?: string } = {}) =>
  ({
    metadata: { name, namespace: 'apps', uid: `uid-${name}`, ...(more.deletionTimestamp && { deletionTimestamp: more.deletionTimestamp }) },
    spec: { workerName: more.workerName ?? 'w1' },
    status: { phase: more.phase ?? 'Assigned' },
  }) as unknown as Run

for (const [name, run, isStartable] of [
  ['an assigned Run can be started', runOf('a'), true],
  ['a Run that is still Queued can be started: its worker is set before its phase', runOf('a', { phase: 'Queued' }), true],
  ['a Run of another worker cannot', runOf('a', { workerName: 'w2' }), false],
  ['a Run that is being deleted cannot', runOf('a', { deletionTimestamp: '2026-01-01T00:00:00Z' }), false],
  ['a Run that another process has started cannot', runOf('a', { phase: 'Preparing' }), false],
  ['a Run that was declared Lost cannot', runOf('a', { phase: 'Lost' }), false],
] as [string, Run, boolean][]) {
  test(name, () => {
    const assignments = new RunAssignments('w1')
    equal(assignments.observe(run), isStartable)
    equal(assignments.assignedCount, isStartable ? 1 : 0)
  })
}

test('starts Runs in the order of their arrival, each once', () => {
  const assignments = new RunAssignments('w1')
  for (const name of ['a', 'b', 'a']) assignments.observe(runOf(name))
  equal(assignments.startNext()?.metadata.name, 'a')
  equal(assignments.observe(runOf('a')), false, 'a later version of a started Run does not start it again')
  equal(assignments.startNext()?.metadata.name, 'b')
  equal(assignments.startNext(), undefined)
  deepEqual([assignments.assignedCount, assignments.startedCount], [0, 2])
})

test('drops a Run that stops being startable, is deleted, or is missing from a new list', () => {
  const assignments = new RunAssignments('w1')
  for (const name of ['a', 'b', 'c']) assignments.observe(runOf(name))
  assignments.observe(runOf('a', { phase: 'Canceled' }))
  assignments.remove(runOf('b'))
  assignments.retain(new Set(['uid-b']))
  equal(assignments.assignedCount, 0)
})
