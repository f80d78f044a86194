import { deepEqual } from 'node:assert/strict'
import { test } from 'node:test'
import type { Worker } from '../../../../api/index.ts'
import { rfc3339 } from '../../../../kubernetes/object/index.ts'
import { testWorker } from '../../objects.testing.ts'
import type { ExitFailure } from '../pool-driver.ts'
import { decideWorkerPods } from './decide-worker-pods.ts'
import type { Pod } from './pod.ts'
import type { WorkerPodState } from './worker-pod-state.ts'

type Case = { worker?: Worker; pod?: Pod; state?: WorkerPodState }

function podWorker(
  name: string,
  phase: 'Pending' | 'Ready' | 'Failed',
  { pool = 'p', atMs = 0, reason }: { pool?: string; atMs?: number; reason?: string } = {},
): Worker {
  const worker = testWorker(name, { pool })
  const metadata = { ...worker.metadata, creationTimestamp: rfc3339(atMs) }
  const spec = { ...worker.spec, start: true, pod: { namespace: 'ns', serviceAccountName: 'default' } }
  return { ...worker, metadata, spec, status: { phase, ...(reason && { reason }) } }
}

const pod = (name: string, isDeleted = false) =>
  ({ metadata: { name, namespace: 'ns', ...(isDeleted && { deletionTimestamp: rfc3339(0) }) } }) as unknown as Pod

const starting = (reason?: 'ImagePullFailed' | 'Unschedulable'): WorkerPodState => ({
  state: 'starting',
  failure: reason && { reason, message: `Pod ns/w: ${reason}` },
})
const succeeded = (endedMs: number): WorkerPodState => ({ state: 'ended', exitCode: 0, failure: undefined, endedMs })
const crashed: ExitFailure = { reason: 'CrashedOnStartup', message: 'exited' }
const failed = (endedMs: number): WorkerPodState => ({ state: 'ended', exitCode: 1, failure: crashed, endedMs })

function decide(nowMs: number, cases: readonly Case[], deleted: readonly string[] = []) {
  const evicted: ExitFailure = { reason: 'Evicted', message: 'evicted', loss: { reason: 'Evicted', message: 'evicted' } }
  const { create, report, remove, removePods, requeueAfterMs } = decideWorkerPods({
    workers: cases.flatMap(({ worker }) => worker ?? []),
    pods: cases.flatMap(({ pod, state }) => (pod && state ? [{ pod, state }] : [])),
    deleted: new Map(deleted.map(name => [name, evicted])),
    hasPool: name => name !== 'deleted',
    nowMs,
  })
  return [
    ...create.map(({ metadata }) => `create the Pod of ${metadata.name}`),
    ...report.map(({ worker, status }) => `${worker.metadata.name} is ${status.phase} ${status.reason ?? ''}`.trim()),
    ...remove.map(({ metadata }) => `delete ${metadata.name}`),
    ...removePods.map(({ metadata }) => `delete the Pod ${metadata.name}`),
    ...(requeueAfterMs === undefined ? [] : [`again in ${requeueAfterMs} ms`]),
  ]
}

test('a Worker without a Pod gets it, unless that was deleted: then it has failed', () => {
  deepEqual(decide(0, [{ worker: podWorker('w', 'Pending') }]), ['create the Pod of w'])
  deepEqual(decide(0, [{ worker: podWorker('w', 'Pending') }], ['w']), ['w is Failed Evicted'])
})

test('a Worker shows why its Pod does not start, and no longer once it does; another message alone is not written', () => {
  const start = (reason?: string, state = starting()) => [
    { worker: podWorker('w', 'Pending', reason ? { reason } : {}), pod: pod('w'), state },
  ]
  deepEqual(decide(0, start()), [])
  deepEqual(decide(0, start(undefined, starting('ImagePullFailed'))), ['w is Pending ImagePullFailed'])
  deepEqual(decide(0, start('ImagePullFailed', starting('ImagePullFailed'))), [])
  deepEqual(decide(0, start('ImagePullFailed', { state: 'running' })), ['w is Pending'])
})

test('a Worker whose Pod ended before it registered has failed, and is deleted with its Pod 10 minutes later', () => {
  deepEqual(decide(0, [{ worker: podWorker('w', 'Pending'), pod: pod('w'), state: failed(0) }]), ['w is Failed CrashedOnStartup'])
  const ended = [{ worker: podWorker('w', 'Failed'), pod: pod('w'), state: failed(0) }]
  deepEqual(decide(599_999, ended), ['again in 1 ms'])
  deepEqual(decide(600_000, ended), ['delete w'])
})

test('a failed Worker without a Pod is deleted 10 minutes after its creation', () => {
  deepEqual(decide(600_000, [{ worker: podWorker('w', 'Failed') }]), ['delete w'])
})

test('of the failed Workers of a pool the newest 10 are kept', () => {
  const many = Array.from({ length: 12 }, (_, i) => ({ worker: podWorker(`f${i}`, 'Failed'), pod: pod(`f${i}`), state: failed(i) }))
  const other = { worker: podWorker('other', 'Failed', { pool: 'q' }), pod: pod('other'), state: failed(0) }
  deepEqual(decide(100, [...many, other]), ['delete f1', 'delete f0', 'again in 599900 ms'])
})

test('of a deleted pool, Workers that have not registered are deleted, and registered ones are left to their drain', () => {
  const pool = 'deleted'
  deepEqual(decide(0, [{ worker: podWorker('w', 'Pending', { pool }) }]), ['delete w'])
  deepEqual(decide(0, [{ worker: podWorker('w', 'Pending', { pool }), pod: pod('w'), state: starting('Unschedulable') }]), ['delete w'])
  deepEqual(decide(0, [{ worker: podWorker('w', 'Failed', { pool }) }]), ['delete w'])
  deepEqual(decide(0, [{ worker: podWorker('w', 'Ready', { pool }), pod: pod('w'), state: { state: 'running' } }]), [])
})

test('a Pod whose Worker was deleted is left to the garbage collector for a minute', () => {
  deepEqual(decide(59_999, [{ pod: pod('s'), state: succeeded(0) }]), ['again in 1 ms'])
  deepEqual(decide(60_000, [{ pod: pod('s'), state: succeeded(0) }]), ['delete the Pod s'])
})

test('a registered worker, a Pod that has not ended and one that is being deleted are left alone', () => {
  deepEqual(
    decide(10 ** 9, [
      { worker: podWorker('busy', 'Ready') },
      { pod: pod('r'), state: { state: 'running' } },
      { pod: pod('d', true), state: succeeded(0) },
      { worker: podWorker('t', 'Pending'), pod: pod('t', true), state: { state: 'terminating', failure: undefined } },
    ]),
    [],
  )
})
