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
const start: WorkerStep = { kind: 'start' }
const exit: WorkerStep = { kind: 'exit' }
const drain = (reason: 'Idle' | 'RunLimitReached' | 'MemoryLimitReached'): WorkerStep => ({ kind: 'drain', reason })

for (const [name, state, want] of [
  ['waits without an assigned Run', {}, wait],
  ['starts an assigned Run', { assigned: 1 }, start],
  ['waits while no slot is free', { assigned: 1, running: 1, started: 1 }, wait],
  ['starts a second Run in a free slot', { assigned: 1, running: 1, started: 1, slots: 2 }, start],
  ['one-shot: starts its first Run', { lifecycle: 'OneShot', assigned: 1 }, start],
  ['one-shot: waits for its Run', { lifecycle: 'OneShot', started: 1, running: 1 }, wait],
  ['one-shot: exits after its Run', { lifecycle: 'OneShot', started: 1 }, exit],
  ['one-shot: exits instead of starting a second Run', { lifecycle: 'OneShot', started: 1, assigned: 1 }, exit],
  ['one-shot with two slots: starts a second Run', { lifecycle: 'OneShot', slots: 2, started: 1, running: 1, assigned: 1 }, start],
  ['draining: waits for its Runs', { isDraining: true, running: 1, started: 1 }, wait],
  ['draining: exits after its last Run', { isDraining: true, started: 1 }, exit],
  ['draining: starts a Run that was assigned before', { isDraining: true, assigned: 1 }, start],
  ['drains after its idle timeout', { idleMs: 10, idleTimeoutMs: 10 }, drain('Idle')],
  ['does not count as idle while it executes a Run', { idleMs: 10, idleTimeoutMs: 10, running: 1, started: 1 }, wait],
  ['drains after its Run limit', { started: 3, recycleAfterRuns: 3 }, drain('RunLimitReached')],
  [
    'drains after its Run limit while the last Runs still run',
    { started: 3, running: 2, slots: 2, recycleAfterRuns: 3 },
    drain('RunLimitReached'),
  ],
  ['drains above its memory limit', { started: 1, memoryBytes: 101, recycleAboveBytes: 100 }, drain('MemoryLimitReached')],
  ['ignores its memory limit before its first Run: it would never execute one', { memoryBytes: 101, recycleAboveBytes: 100 }, wait],
  ['fenced: waits until its engines have stopped', { isFenced: true, running: 1, started: 1, assigned: 1 }, wait],
  ['fenced: exits without starting an assigned Run', { isFenced: true, assigned: 1 }, { kind: 'exitFenced' }],
] as [string, Partial<WorkerState>, WorkerStep][]) {
  test(name, () => deepEqual(decideStep({ ...idle, ...state }), want))
}
