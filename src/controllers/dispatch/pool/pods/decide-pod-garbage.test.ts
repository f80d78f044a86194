import { deepEqual } from 'node:assert/strict'
import { test } from 'node:test'
import { decidePodGarbage } from './decide-pod-garbage.ts'
import type { Pod } from './pod.ts'
import type { WorkerPodState } from './worker-pod-state.ts'

function podOf(name: string, state: WorkerPodState, { pool = 'p', isDeleted = false } = {}): { pod: Pod; state: WorkerPodState } {
  const metadata = { name, labels: { 'oarlock.dev/pool': pool }, ...(isDeleted && { deletionTimestamp: '2026-01-01T00:00:00Z' }) }
  return { pod: { metadata } as unknown as Pod, state }
}

const succeeded = (endedMs: number): WorkerPodState => ({ state: 'ended', exitCode: 0, failure: undefined, endedMs })
const failed = (endedMs: number): WorkerPodState => ({
  state: 'ended',
  exitCode: 1,
  failure: { reason: 'CrashedOnStartup', message: 'exited' },
  endedMs,
})

const decide = (nowMs: number, ...pods: ReturnType<typeof podOf>[]) => {
  const { remove, requeueAfterMs } = decidePodGarbage(pods, nowMs)
  return [remove.map(({ metadata }) => metadata.name), requeueAfterMs]
}

test('a succeeded Pod is deleted after 1 min, a failed one after 10 min', () => {
  const pods = [podOf('s', succeeded(0)), podOf('f', failed(0))]
  deepEqual(decide(59_999, ...pods), [[], 1])
  deepEqual(decide(60_000, ...pods), [['s'], 540_000])
  deepEqual(decide(600_000, ...pods), [['s', 'f'], undefined])
})

test('of the failed Pods of a pool the newest 10 are kept', () => {
  const pods = Array.from({ length: 12 }, (_, i) => podOf(`f${i}`, failed(i)))
  deepEqual(decide(100, ...pods, podOf('other', failed(0), { pool: 'q' })), [['f1', 'f0'], 599_900])
})

test('a Pod that has not ended or is being deleted is left alone', () => {
  const pods = [podOf('r', { state: 'running' }), podOf('t', { state: 'terminating' }), podOf('d', succeeded(0), { isDeleted: true })]
  deepEqual(decide(10 ** 9, ...pods), [[], undefined])
})
