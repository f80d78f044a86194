import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { PriorityClass, Run, Stack } from '../../api/index.ts'
import { priorityClassOf } from './priority-class.ts'

const stack = (priorityClass?: PriorityClass): Stack => ({
  apiVersion: 'oarlock.dev/v1alpha1',
  kind: 'Stack',
  metadata: { name: 'app', uid: 'u', resourceVersion: '1', creationTimestamp: '2026-06-01T10:00:00Z' },
  spec: { engine: 'command', source: {}, ...(priorityClass && { priorityClass }) },
})
const run = (name: string, priorityClass: PriorityClass): Run => ({
  apiVersion: 'oarlock.dev/v1alpha1',
  kind: 'Run',
  metadata: { name, uid: name, resourceVersion: '1', creationTimestamp: '2026-06-01T10:00:00Z' },
  spec: {
    type: 'Apply',
    stackRef: { name: 'app', uid: 'u', generation: 1 },
    epoch: 1,
    stack: { engine: 'command', source: {} },
    revision: 'r',
    inputsDigest: 'i',
    reason: 'x',
    pool: 'default',
    priority: 0,
    priorityClass,
  },
})

test('the priority class of a Run is that of its Stack, else it follows from the reason of the Run', () => {
  const by = (reason: string, runs: Run[] = [], superseded?: Run) =>
    priorityClassOf(stack(), { type: 'Apply', reason, atMs: 0, recoveredFrom: 'lost' }, runs, superseded)
  for (const [reason, want] of [
    ['Requested', 'Interactive'],
    ['Approved', 'Interactive'],
    ['NewGeneration', 'Change'],
    ['SourceChanged', 'Change'],
    ['InputsChanged', 'Change'],
    ['Deleted', 'Change'],
    ['PlanOutdated', 'Change'],
    ['DriftCheck', 'Drift'],
  ] as const) {
    assert.equal(by(reason), want, reason)
  }
  assert.equal(by('Retry', [run('a', 'Drift')]), 'Drift', 'a retried check stays a check')
  assert.equal(by('Retry', [run('a', 'Interactive')]), 'Change', 'no user waits for a retry')
  assert.equal(by('RecoveredFrom', [run('lost', 'Interactive')]), 'Interactive', 'a Run that continues a lost one keeps its class')
  assert.equal(by('NewGeneration', [], run('old', 'Interactive')), 'Interactive', 'a user still waits for the superseded Run')
  assert.equal(by('NewGeneration', [], run('old', 'Drift')), 'Change')
  assert.equal(
    priorityClassOf(stack('Drift'), { type: 'Apply', reason: 'Requested', atMs: 0 }, [], undefined),
    'Drift',
    'the class of the Stack takes precedence',
  )
})
