import { deepEqual } from 'node:assert/strict'
import { test } from 'node:test'
import type { Pod, PodBody } from './pod.ts'
import { workerPodState } from './worker-pod-state.ts'

const pod = (status: PodBody['status'], metadata = {}): Pod => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'w-1', namespace: 'ns', uid: 'u', resourceVersion: '1', creationTimestamp: '2026-06-01T10:00:00Z', ...metadata },
  status,
})
const waiting = (reason: string, message?: string) => [{ name: 'worker', state: { waiting: { reason, message } } }]
const describeState = (status: PodBody['status'], metadata = {}) => {
  const state = workerPodState(pod(status, metadata), 'worker')
  const failure = 'failure' in state ? state.failure : undefined
  return [state.state, ...('exitCode' in state ? [state.exitCode] : []), ...(failure ? [`${failure.reason}: ${failure.message}`] : [])]
}

// Statuses as the kubelet and the scheduler of Kubernetes write them.
for (const [name, status, expected] of [
  ['a new Pod is starting', undefined, ['starting']],
  ['containers being created', { phase: 'Pending', containerStatuses: waiting('ContainerCreating') }, ['starting']],
  [
    'ImagePullBackOff',
    { phase: 'Pending', containerStatuses: waiting('ImagePullBackOff', 'Back-off pulling image "nope:1"') },
    ['starting', 'ImagePullFailed: Pod ns/w-1: ImagePullBackOff: Back-off pulling image "nope:1"'],
  ],
  [
    'the image of an init container',
    { phase: 'Pending', initContainerStatuses: waiting('ErrImagePull', 'not found') },
    ['starting', 'ImagePullFailed: Pod ns/w-1: ErrImagePull: not found'],
  ],
  [
    'a missing Secret',
    { phase: 'Pending', containerStatuses: waiting('CreateContainerConfigError', 'secret "x" not found') },
    ['starting', 'ContainerConfigError: Pod ns/w-1: CreateContainerConfigError: secret "x" not found'],
  ],
  [
    'no node with enough resources',
    {
      phase: 'Pending',
      conditions: [{ type: 'PodScheduled', status: 'False', reason: 'Unschedulable', message: '0/3 nodes are available' }],
    },
    ['starting', 'Unschedulable: Pod ns/w-1: Unschedulable: 0/3 nodes are available'],
  ],
  ['running', { phase: 'Running', containerStatuses: [{ name: 'worker', state: { running: {} } }] }, ['running']],
  [
    'succeeded',
    { phase: 'Succeeded', containerStatuses: [{ name: 'worker', state: { terminated: { exitCode: 0, reason: 'Completed' } } }] },
    ['ended', 0],
  ],
  [
    'crashed',
    { phase: 'Failed', containerStatuses: [{ name: 'worker', state: { terminated: { exitCode: 137, reason: 'OOMKilled' } } }] },
    ['ended', 137, 'CrashedOnStartup: Pod ns/w-1 exited with code 137: OOMKilled'],
  ],
  [
    'evicted by the kubelet',
    { phase: 'Failed', reason: 'Evicted', message: 'The node was low on resource: memory.' },
    ['ended', undefined, 'Evicted: Pod ns/w-1: Evicted: The node was low on resource: memory.'],
  ],
  [
    'preempted',
    { phase: 'Failed', conditions: [{ type: 'DisruptionTarget', status: 'True', reason: 'PreemptionByScheduler', message: 'preempting' }] },
    ['ended', undefined, 'Preempted: Pod ns/w-1: PreemptionByScheduler: preempting'],
  ],
  [
    'evicted through the Eviction API',
    { phase: 'Failed', conditions: [{ type: 'DisruptionTarget', status: 'True', reason: 'EvictionByEvictionAPI', message: 'evicting' }] },
    ['ended', undefined, 'Evicted: Pod ns/w-1: EvictionByEvictionAPI: evicting'],
  ],
  [
    'its node was deleted',
    {
      phase: 'Failed',
      conditions: [{ type: 'DisruptionTarget', status: 'True', reason: 'DeletionByPodGC', message: 'node no longer exists' }],
    },
    ['ended', undefined, 'NodeLost: Pod ns/w-1: DeletionByPodGC: node no longer exists'],
  ],
  [
    'its machine shuts down',
    { phase: 'Failed', reason: 'Terminated', message: 'Pod was terminated in response to imminent node shutdown.' },
    ['ended', undefined, 'NodeLost: Pod ns/w-1: Terminated: Pod was terminated in response to imminent node shutdown.'],
  ],
  [
    'the exit code of a sidecar is ignored',
    {
      phase: 'Failed',
      containerStatuses: [
        { name: 'proxy', state: { terminated: { exitCode: 0 } } },
        { name: 'worker', state: { terminated: { exitCode: 3 } } },
      ],
    },
    ['ended', 3, 'CrashedOnStartup: Pod ns/w-1 exited with code 3: no reason given'],
  ],
] as [string, PodBody['status'], unknown[]][]) {
  test(`a Pod: ${name}`, () => deepEqual(describeState(status), expected))
}

test('a Pod that is being deleted is terminating, neither running nor ended', () => {
  deepEqual(describeState({ phase: 'Running' }, { deletionTimestamp: '2026-06-01T10:00:00Z' }), ['terminating'])
})

for (const [name, terminated, metadata, expected] of [
  ['its container exceeds its memory limit', { exitCode: 137, reason: 'OOMKilled' }, {}, 'WorkerOutOfMemory'],
  ['it ends by a segmentation fault', { exitCode: 139, reason: 'Error' }, {}, 'WorkerCrashed'],
  ['it ends by an unexpected error', { exitCode: 1, reason: 'Error' }, {}, 'WorkerCrashed'],
  ['it is killed by anyone', { exitCode: 137, reason: 'Error' }, {}, undefined],
  ['it could not renew its Lease', { exitCode: 3, reason: 'Error' }, {}, undefined],
  ['its Pod is being deleted', { exitCode: 1, reason: 'Error' }, { deletionTimestamp: '2026-06-01T10:00:00Z' }, undefined],
] as const) {
  test(`a worker has ${expected === undefined ? 'not ' : ''}crashed if ${name}`, () => {
    const status = { phase: 'Failed', containerStatuses: [{ name: 'worker', state: { terminated } }] } as PodBody['status']
    const state = workerPodState(pod(status, metadata), 'worker')
    deepEqual(state.state === 'ended' && state.failure?.crash?.reason, expected)
  })
}

test('a Pod that a taint deletes is evicted; it is lost with its node if that has not been ready before', () => {
  const deletedWith = (ready: 'True' | 'False') =>
    describeState(
      {
        phase: 'Running',
        conditions: [
          { type: 'Ready', status: ready },
          { type: 'ContainersReady', status: 'True' },
          {
            type: 'DisruptionTarget',
            status: 'True',
            reason: 'DeletionByTaintManager',
            message: 'Taint manager: deleting due to NoExecute taint',
          },
        ],
      },
      { deletionTimestamp: '2026-06-01T10:00:00Z' },
    )
  const cause = 'Pod ns/w-1: DeletionByTaintManager: Taint manager: deleting due to NoExecute taint'
  deepEqual(deletedWith('True'), ['terminating', `Evicted: ${cause}`])
  deepEqual(deletedWith('False'), ['terminating', `NodeLost: ${cause}`])
})

test('a worker whose Pod is evicted has not crashed', () => {
  const containerStatuses = [{ name: 'worker', state: { terminated: { exitCode: 137, reason: 'OOMKilled' } } }]
  const state = workerPodState(pod({ phase: 'Failed', reason: 'Evicted', containerStatuses } as PodBody['status']), 'worker')
  deepEqual(state.state === 'ended' && state.failure?.crash, undefined)
})
