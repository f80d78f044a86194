import { deepEqual, equal } from 'node:assert/strict'
import { test } from 'node:test'
import type { Run } from '../../api/index.ts'
import { type Admission, RunAssignments } from './run-assignments.ts'

type Fields = { workerName?: string; phase?: string; deletionTimestamp?: string; version?: number }

const runOf = (name: string, { workerName = 'w1', phase = 'Assigned', deletionTimestamp, version = 1 }: Fields = {}) =>
  ({
    metadata: {
      ...{ name, namespace: 'apps', uid: `uid-${name}`, resourceVersion: String(version) },
      ...(deletionTimestamp && { deletionTimestamp }),
    },
    spec: { workerName },
    status: { phase },
  }) as unknown as Run

const ended = (name: string) => runOf(name, { phase: 'Succeeded' })

const assignmentsOf = (slots: number, lifecycle: 'OneShot' | 'Warm' = 'Warm') => new RunAssignments({ workerName: 'w1', slots, lifecycle })

for (const [name, run, admission] of [
  ['accepts an assigned Run', runOf('a'), 'accepted'],
  ['accepts a Run that is still Queued: its worker is set before its phase', runOf('a', { phase: 'Queued' }), 'accepted'],
  ['ignores a Run of another worker', runOf('a', { workerName: 'w2' }), 'none'],
  ['ignores a Run that is being deleted', runOf('a', { deletionTimestamp: '2026-01-01T00:00:00Z' }), 'none'],
  ['ignores a Run that another process has started', runOf('a', { phase: 'Preparing' }), 'none'],
  ['ignores a Run that was declared Lost', runOf('a', { phase: 'Lost' }), 'none'],
] as [string, Run, Admission][]) {
  test(name, () => {
    const assignments = assignmentsOf(1)
    equal(assignments.observe(run), admission)
    equal(assignments.assignedCount, admission === 'accepted' ? 1 : 0)
  })
}

test('starts Runs in the order of their arrival, each once', () => {
  const assignments = assignmentsOf(2)
  for (const name of ['a', 'b', 'a']) assignments.observe(runOf(name))
  equal(assignments.startNext()?.metadata.name, 'a')
  equal(assignments.observe(runOf('a')), 'none', 'a later version of a started Run does not start it again')
  equal(assignments.startNext()?.metadata.name, 'b')
  equal(assignments.startNext(), undefined)
  deepEqual([assignments.assignedCount, assignments.startedCount], [0, 2])
})

test('drops a Run that stops being startable, is deleted, or is missing from a new list', () => {
  const assignments = assignmentsOf(3)
  for (const name of ['a', 'b', 'c']) assignments.observe(runOf(name))
  assignments.observe(runOf('a', { phase: 'Canceled' }))
  assignments.remove(runOf('b'))
  assignments.replace([runOf('b', { workerName: 'w2' })])
  equal(assignments.assignedCount, 0)
})

test('rejects a Run for which no slot is free, and never starts it later', () => {
  const assignments = assignmentsOf(1)
  equal(assignments.observe(runOf('a')), 'accepted')
  equal(assignments.observe(runOf('b')), 'rejected', 'the slot is promised to a Run that has not started')
  assignments.startNext()
  equal(assignments.observe(runOf('c')), 'rejected', 'the slot is used')
  assignments.observe(ended('a'))
  equal(assignments.observe(runOf('b')), 'none', 'its end is being written')
  equal(assignments.startNext(), undefined)
})

test('a slot is free when the end of its Run is observed, before the worker has cleaned up', () => {
  const assignments = assignmentsOf(1)
  assignments.observe(runOf('a'))
  assignments.startNext()
  assignments.observe(ended('a'))
  equal(assignments.observe(runOf('b')), 'accepted')
})

test('a canceled Run that was not started frees its slot', () => {
  const assignments = assignmentsOf(1, 'OneShot')
  assignments.observe(runOf('a'))
  assignments.observe(runOf('a', { phase: 'Canceled' }))
  equal(assignments.observe(runOf('b')), 'accepted')
})

test('a one-shot worker rejects a Run after it has used its slots', () => {
  const assignments = assignmentsOf(1, 'OneShot')
  assignments.observe(runOf('a'))
  assignments.startNext()
  assignments.observe(ended('a'))
  equal(assignments.observe(runOf('b')), 'rejected')
})

test('of a list, the Runs that were assigned first are accepted, whatever their names', () => {
  const assignments = assignmentsOf(1)
  const rejected = assignments.replace([runOf('a', { version: 7 }), runOf('b', { version: 5 })])
  deepEqual(
    rejected.map(({ metadata }) => metadata.name),
    ['a'],
  )
  equal(assignments.startNext()?.metadata.name, 'b')
})

test('a list in which a Run has ended, or is missing, frees its slot before the next Run is accepted', () => {
  for (const list of [[runOf('b', { version: 2 }), { ...ended('a') }], [runOf('b')]]) {
    const assignments = assignmentsOf(1)
    assignments.observe(runOf('a'))
    assignments.startNext()
    deepEqual(assignments.replace(list), [])
    equal(assignments.startNext()?.metadata.name, 'b')
  }
})
