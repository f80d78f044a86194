import { deepEqual, equal } from 'node:assert/strict'
import { test } from 'node:test'
import { testPool } from '../../objects.testing.ts'
import { makeWorkerPod } from './make-pod.ts'

const pool = testPool('gpu', {
  mode: 'Pod',
  lifecycle: 'Warm',
  slots: 2,
  drainGrace: '5m',
  engineEnvironment: ['AWS_*', 'KUBECONFIG'],
  recycle: { afterRuns: 50, aboveMemory: '1Gi' },
  namespace: 'builds',
  template: {
    metadata: { labels: { team: 'a', 'oarlock.dev/pool': 'other' }, annotations: { note: 'x' } },
    spec: {
      restartPolicy: 'Always',
      serviceAccountName: 'builder',
      volumes: [{ name: 'scratch', emptyDir: {} }],
      containers: [
        { name: 'proxy', image: 'proxy:1' },
        {
          name: 'worker',
          image: 'oarlock:1',
          env: [
            { name: 'TZ', value: 'UTC' },
            { name: 'OARLOCK_POOL', value: 'else' },
          ],
        },
      ],
    },
  },
})
const make = (hasCredential: boolean) =>
  makeWorkerPod({ pool, workerName: 'gpu-1', environment: { OARLOCK_SERVER: 'https://api:7466' }, hasCredential }) as unknown as {
    metadata: { labels: Record<string, string>; ownerReferences: unknown[] }
    spec: Record<string, unknown> & { containers: { name: string; env?: { name: string; value: string }[]; volumeMounts?: unknown[] }[] }
  }

test('keeps the template except for the fields that make it a worker of this pool', () => {
  const { metadata, spec } = make(false)
  deepEqual(metadata.labels, {
    team: 'a',
    'oarlock.dev/pool': 'gpu',
    'app.kubernetes.io/managed-by': 'oarlock',
    'app.kubernetes.io/component': 'worker',
  })
  deepEqual(metadata.ownerReferences, [
    { apiVersion: 'oarlock.dev/v1alpha1', kind: 'WorkerPool', name: 'gpu', uid: 'uid-gpu', controller: true, blockOwnerDeletion: true },
  ])
  equal(spec.restartPolicy, 'Never')
  equal(spec.serviceAccountName, 'builder')
  // The drain, and the signals to the engines after it, must end before the kubelet kills the Pod.
  equal(spec.terminationGracePeriodSeconds, 390)
  deepEqual(spec.containers[0], { name: 'proxy', image: 'proxy:1' })
  deepEqual(Object.fromEntries(spec.containers[1]!.env!.map(({ name, value }) => [name, value])), {
    TZ: 'UTC',
    OARLOCK_WORKER_NAME: 'gpu-1',
    OARLOCK_POOL: 'gpu',
    OARLOCK_POOL_SETTINGS: 'complete',
    OARLOCK_LIFECYCLE: 'Warm',
    OARLOCK_SLOTS: '2',
    OARLOCK_DRAIN_GRACE: '5m',
    OARLOCK_ENGINE_ENVIRONMENT: 'AWS_*,KUBECONFIG',
    OARLOCK_ALLOWED_NETWORKS: 'Private,None',
    OARLOCK_RECYCLE_AFTER_RUNS: '50',
    OARLOCK_RECYCLE_ABOVE_MEMORY: '1Gi',
    OARLOCK_SERVER: 'https://api:7466',
  })
  equal(spec.containers[1]!.env!.filter(({ name }) => name === 'OARLOCK_POOL').length, 1)
})

test('mounts the credential in the worker container only, and no service account token', () => {
  const { spec } = make(true)
  equal(spec.automountServiceAccountToken, false)
  equal(spec.shareProcessNamespace, true)
  deepEqual(spec.volumes, [
    { name: 'scratch', emptyDir: {} },
    { name: 'oarlock-credential', secret: { secretName: 'gpu-1', defaultMode: 0o400 } },
  ])
  equal(spec.containers[0]!.volumeMounts, undefined)
  deepEqual(spec.containers[1]!.volumeMounts, [
    { name: 'oarlock-credential', mountPath: '/var/run/secrets/oarlock.dev/worker', readOnly: true },
  ])
  equal(spec.containers[1]!.env!.find(({ name }) => name === 'OARLOCK_TOKEN_FILE')?.value, '/var/run/secrets/oarlock.dev/worker/token')
})
