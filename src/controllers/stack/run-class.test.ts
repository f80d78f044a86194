import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { PriorityClass, Run, Stack } from '../../api/index.ts'
import { runClass } from './run-class.ts'

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

test('the class of a Run: what its Stack says, else by what caused it', () => {
  const by = (reason: string, runs: Run[] = [], superseded?: Run) =>
    runClass(stack(), { type: 'Apply', reason, atMs: 0, recoveredFrom: 'lost' }, runs, superseded)
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
  assert.equal(by('Retry', [run('a', 'Drift')]), 'Drift', 'a retry of a check is a check')
  assert.equal(by('Retry', [run('a', 'Interactive')]), 'Change', 'nobody waits for a retry')
  assert.equal(by('RecoveredFrom', [run('lost', 'Interactive')]), 'Interactive', 'what was under way goes on as what it was')
  assert.equal(by('NewGeneration', [], run('old', 'Interactive')), 'Interactive', 'somebody still waits for what was replaced')
  assert.equal(by('NewGeneration', [], run('old', 'Drift')), 'Change')
  assert.equal(runClass(stack('Drift'), { type: 'Apply', reason: 'Requested', atMs: 0 }, [], undefined), 'Drift', 'the Stack decides')
})
