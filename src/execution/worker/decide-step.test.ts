import { deepEqual } from 'node:assert/strict'
import { test } from 'node:test'
import { decideStep, type WorkerStep, type WorkerView } from './decide-step.ts'

const idle: WorkerView = {
  lifecycle: 'Warm',
  slots: 1,
  begun: 0,
  running: 0,
  given: 0,
  isDraining: false,
  isFenced: false,
  idleMs: 0,
  idleTimeoutMs: Number.POSITIVE_INFINITY,
  recycleAfterRuns: Number.POSITIVE_INFINITY,
  memoryBytes: 100,
  recycleAboveBytes: Number.POSITIVE_INFINITY,
}

const wait: WorkerStep = { kind: 'wait' }
const take: WorkerStep = { kind: 'take' }
const end: WorkerStep = { kind: 'end' }
const drain = (reason: 'Idle' | 'RunsDone' | 'MemoryHigh'): WorkerStep => ({ kind: 'drain', reason })

for (const [what, view, want] of [
  ['nothing to do', {}, wait],
  ['a Run was given', { given: 1 }, take],
  ['no slot is free', { given: 1, running: 1, begun: 1 }, wait],
  ['another slot is free', { given: 1, running: 1, begun: 1, slots: 2 }, take],
  ['one-shot: the first Run', { lifecycle: 'OneShot', given: 1 }, take],
  ['one-shot: works', { lifecycle: 'OneShot', begun: 1, running: 1 }, wait],
  ['one-shot: done', { lifecycle: 'OneShot', begun: 1 }, end],
  ['one-shot: takes no second Run', { lifecycle: 'OneShot', begun: 1, given: 1 }, end],
  ['one-shot with two slots: the second beside the first', { lifecycle: 'OneShot', slots: 2, begun: 1, running: 1, given: 1 }, take],
  ['draining, and works', { isDraining: true, running: 1, begun: 1 }, wait],
  ['draining, and done', { isDraining: true, begun: 1 }, end],
  ['draining: what was given before is its own', { isDraining: true, given: 1 }, take],
  ['idle for too long', { idleMs: 10, idleTimeoutMs: 10 }, drain('Idle')],
  ['not idle: it works', { idleMs: 10, idleTimeoutMs: 10, running: 1, begun: 1 }, wait],
  ['after so many Runs a fresh one', { begun: 3, recycleAfterRuns: 3 }, drain('RunsDone')],
  ['… also while the last of them work', { begun: 3, running: 2, slots: 2, recycleAfterRuns: 3 }, drain('RunsDone')],
  ['memory is over the limit', { begun: 1, memoryBytes: 101, recycleAboveBytes: 100 }, drain('MemoryHigh')],
  ['memory is not looked at before the first Run: it would never get one', { memoryBytes: 101, recycleAboveBytes: 100 }, wait],
  ['fenced, and its engines still end', { isFenced: true, running: 1, begun: 1, given: 1 }, wait],
  ['fenced', { isFenced: true, given: 1 }, { kind: 'endFenced' }],
] as [string, Partial<WorkerView>, WorkerStep][]) {
  test(`a worker: ${what}`, () => deepEqual(decideStep({ ...idle, ...view }), want))
}
