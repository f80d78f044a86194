import { deepEqual } from 'node:assert/strict'
import { test } from 'node:test'
import { decideStep, type WorkerState, type WorkerStep } from './decide-step.ts'

const idle: WorkerState = {
  lifecycle: 'Warm',
  slots: 1,
  started: 0,
  running: 0,
  assigned: 0,
  isDraining: false,
  isFenced: false,
  idleMs: 0,
  idleTimeoutMs: Number.POSITIVE_INFINITY,
  recycleAfterRuns: Number.POSITIVE_INFINITY,
  memoryBytes: 100,
  recycleAboveBytes: Number.POSITIVE_INFINITY,
}

const wait: WorkerStep = { kind: 'wait' }
const take: WorkerStep = { kind: 'start' }
const end: WorkerStep = { kind: 'exit' }
const drain = (reason: 'Idle' | 'RunLimitReached' | 'MemoryLimitReached'): WorkerStep => ({ kind: 'drain', reason })

for (const [what, view, want] of [
  ['nothing to do', {}, wait],
  ['a Run was given', { assigned: 1 }, take],
  ['no slot is free', { assigned: 1, running: 1, started: 1 }, wait],
  ['another slot is free', { assigned: 1, running: 1, started: 1, slots: 2 }, take],
  ['one-shot: the first Run', { lifecycle: 'OneShot', assigned: 1 }, take],
  ['one-shot: works', { lifecycle: 'OneShot', started: 1, running: 1 }, wait],
  ['one-shot: done', { lifecycle: 'OneShot', started: 1 }, end],
  ['one-shot: takes no second Run', { lifecycle: 'OneShot', started: 1, assigned: 1 }, end],
  ['one-shot with two slots: the second beside the first', { lifecycle: 'OneShot', slots: 2, started: 1, running: 1, assigned: 1 }, take],
  ['draining, and works', { isDraining: true, running: 1, started: 1 }, wait],
  ['draining, and done', { isDraining: true, started: 1 }, end],
  ['draining: what was given before is its own', { isDraining: true, assigned: 1 }, take],
  ['idle for too long', { idleMs: 10, idleTimeoutMs: 10 }, drain('Idle')],
  ['not idle: it works', { idleMs: 10, idleTimeoutMs: 10, running: 1, started: 1 }, wait],
  ['after so many Runs a fresh one', { started: 3, recycleAfterRuns: 3 }, drain('RunLimitReached')],
  ['… also while the last of them work', { started: 3, running: 2, slots: 2, recycleAfterRuns: 3 }, drain('RunLimitReached')],
  ['memory is over the limit', { started: 1, memoryBytes: 101, recycleAboveBytes: 100 }, drain('MemoryLimitReached')],
  ['memory is not looked at before the first Run: it would never get one', { memoryBytes: 101, recycleAboveBytes: 100 }, wait],
  ['fenced, and its engines still end', { isFenced: true, running: 1, started: 1, assigned: 1 }, wait],
  ['fenced', { isFenced: true, assigned: 1 }, { kind: 'exitFenced' }],
] as [string, Partial<WorkerState>, WorkerStep][]) {
  test(`a worker: ${what}`, () => deepEqual(decideStep({ ...idle, ...view }), want))
}
