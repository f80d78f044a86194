import { deepEqual } from 'node:assert/strict'
import { test } from 'node:test'
import type { WorkerPool } from '../../../api/index.ts'
import { decidePools } from './decide-pools.ts'
import { initialStartState, withStarted, withStartFailing } from './start-state.ts'

const pool = {
  apiVersion: 'oarlock.dev/v1alpha1',
  kind: 'WorkerPool',
  metadata: { name: 'p', uid: 'u', resourceVersion: '1', creationTimestamp: '' },
  spec: { mode: 'Pod', max: 2, idleTimeout: '1m' },
} as WorkerPool

const failure = { reason: 'Unschedulable', message: 'no node' } as const
/** w1 fails to start, w2 only takes its time; both were started at 0. */
const starts = new Map([['p', withStartFailing(withStarted(withStarted(initialStartState, 'w1', 0), 'w2', 0), 'w1', failure)]])

const decide = (nowMs: number, startable: number) => {
  const inventory = { pools: () => ['p'], count: () => ({ workers: 0, busy: 0, idle: 0 }), idle: () => [], workersOf: () => [] }
  const demand = new Map([['p', { queued: startable, startable }]])
  const { withdraw, start, requeueAfterMs } = decidePools({ demand, inventory, pools: [pool], starts, nowMs })
  return { withdraw, start, requeueAfterMs }
}

for (const { name, nowMs, startable, want } of [
  { name: 'while Runs need it', nowMs: 600_000, startable: 2, want: { withdraw: [], start: [], requeueAfterMs: undefined } },
  { name: 'before the idle timeout', nowMs: 59_000, startable: 0, want: { withdraw: [], start: [], requeueAfterMs: 1_000 } },
] as const)
  test(`a worker whose start fails is kept ${name}`, () => deepEqual(decide(nowMs, startable), want))

test('a worker whose start fails and that no Run needs is withdrawn after the idle timeout, one that only takes its time is not', () => {
  deepEqual(decide(60_000, 0), { withdraw: ['w1'], start: [], requeueAfterMs: undefined })
  deepEqual(decide(60_000, 1), { withdraw: ['w1'], start: [], requeueAfterMs: undefined })
})
