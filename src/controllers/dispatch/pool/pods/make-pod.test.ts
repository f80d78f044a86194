import { deepEqual, equal, throws } from 'node:assert/strict'
import { test } from 'node:test'
import { testPool, testWorker } from '../../objects.testing.ts'
import { makeWorker, makeWorkerPod } from './make-pod.ts'

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
      serviceAccountName: 'oarlock-worker-builder',
      volumes: [{ name: 'scratch', emptyDir: {} }],
      containers: [
        { name: 'proxy', image: 'proxy:1' },
        {
          name: 'worker',
          image: 'oarlock:1',
          env: [
            { name: 'TZ', value: 'UTC' },
            { name: 'OARLOCK_LABELS', value: 'gpu=a100' },
            { name: 'OARLOCK_POOL', valueFrom: { fieldRef: { fieldPath: 'metadata.name' } } },
          ],
        },
      ],
    },
  },
})
const worker = { ...testWorker('gpu-1'), spec: { ...makeWorker(pool, 'gpu-1').spec, lifecycle: 'Warm' as const } }
const make = () =>
  makeWorkerPod({ pool, worker, environment: { OARLOCK_SERVER: 'https://api:7466' } }) as unknown as {
    metadata: { labels: Record<string, string>; annotations: Record<string, string>; ownerReferences: unknown[] }
    spec: Record<string, unknown> & { containers: { name: string; env?: { name: string; value: string }[]; volumeMounts?: unknown[] }[] }
  }

test('keeps the template except for the fields that make it a worker of this pool', () => {
  const { metadata, spec } = make()
  deepEqual(metadata.labels, {
    team: 'a',
    'oarlock.dev/pool': 'gpu',
    'app.kubernetes.io/managed-by': 'oarlock',
    'app.kubernetes.io/component': 'worker',
    'oarlock.dev/busy': 'false',
  })
  deepEqual(metadata.annotations, { note: 'x', 'cluster-autoscaler.kubernetes.io/safe-to-evict': 'true' })
  deepEqual(metadata.ownerReferences, [
    { apiVersion: 'oarlock.dev/v1alpha1', kind: 'Worker', name: 'gpu-1', uid: 'uid-gpu-1', controller: true },
  ])
  equal(spec.restartPolicy, 'Never')
  equal(spec.serviceAccountName, 'oarlock-worker-builder')
  // The drain, and the signals to the engines after it, must end before the kubelet kills the Pod.
  equal(spec.terminationGracePeriodSeconds, 390)
  deepEqual(spec.containers[0], { name: 'proxy', image: 'proxy:1' })
  deepEqual(Object.fromEntries(spec.containers[1]!.env!.map(({ name, value }) => [name, value])), {
    TZ: 'UTC',
    OARLOCK_LABELS: 'gpu=a100',
    OARLOCK_WORKER_NAME: 'gpu-1',
    OARLOCK_WORKER_UID: 'uid-gpu-1',
    OARLOCK_DEREGISTERED_BY: 'Controller',
    OARLOCK_ISOLATION: 'Pod',
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
    OARLOCK_TOKEN_FILE: '/var/run/secrets/oarlock.dev/worker/token',
    OARLOCK_CA_FILE: '/var/run/secrets/oarlock.dev/worker/ca.crt',
    OARLOCK_POD_UID: undefined,
  })
  equal(spec.containers[1]!.env!.filter(({ name }) => name === 'OARLOCK_POOL').length, 1)
})

test('the worker gets a token of its Pod, and the other containers get none', () => {
  const { spec } = make()
  equal(spec.automountServiceAccountToken, false)
  equal(spec.shareProcessNamespace, true)
  const sources = [
    { serviceAccountToken: { path: 'token', expirationSeconds: 3_600 } },
    { configMap: { name: 'kube-root-ca.crt', items: [{ key: 'ca.crt', path: 'ca.crt' }] } },
  ]
  deepEqual(spec.volumes, [
    { name: 'oarlock-credential', projected: { sources } },
    { name: 'scratch', emptyDir: {} },
  ])
  equal(spec.containers[0]!.volumeMounts, undefined)
  deepEqual(spec.containers[1]!.volumeMounts, [
    { name: 'oarlock-credential', mountPath: '/var/run/secrets/oarlock.dev/worker', readOnly: true },
  ])
  deepEqual(
    spec.containers[1]!.env!.find(({ name }) => name === 'OARLOCK_POD_UID'),
    { name: 'OARLOCK_POD_UID', valueFrom: { fieldRef: { fieldPath: 'metadata.uid' } } },
  )
})

test('a Pod in the namespace of a Stack reads Runs of this namespace only', () => {
  const own = { ...worker, spec: { ...worker.spec, pod: { namespace: 'shop', serviceAccountName: 'oarlock-worker' } } }
  const { metadata, spec } = makeWorkerPod({ pool, worker: own, environment: {} }) as unknown as ReturnType<typeof make>
  equal((metadata as { namespace?: string }).namespace, 'shop')
  equal(spec.serviceAccountName, 'oarlock-worker')
  equal(spec.containers[1]!.env!.find(({ name }) => name === 'OARLOCK_RUN_NAMESPACE')?.value, 'shop')
})

for (const [what, spec, message] of [
  [
    'a ServiceAccount that no policy recognises',
    { serviceAccountName: 'builder' },
    /pool bad is "builder"; it must be oarlock-worker or begin with "oarlock-worker-"$/,
  ],
  [
    'invalid labels',
    { containers: [{ name: 'worker', env: [{ name: 'OARLOCK_LABELS', value: 'gpu' }] }] },
    /^template of pool bad: OARLOCK_LABELS contains "gpu"; it must be key=value/,
  ],
] as const)
  test(`a template with ${what} is rejected`, () => {
    throws(() => makeWorker(testPool('bad', { mode: 'Pod', template: { spec } }), 'bad-1'), { name: 'StartError', message })
  })

test('the Worker says where its Pod is, and its pool does not own it, whose deletion would end its Run', () => {
  const { metadata, spec } = makeWorker(pool, 'gpu-1')
  deepEqual(metadata.labels, { gpu: 'a100', 'oarlock.dev/pool': 'gpu', 'oarlock.dev/worker': 'gpu-1' })
  deepEqual(spec, {
    pool: 'gpu',
    slots: 2,
    lifecycle: 'Warm',
    start: true,
    pod: { namespace: 'builds', serviceAccountName: 'oarlock-worker-builder' },
  })
  equal('ownerReferences' in metadata, false)
})

test('a Pod for a Stack is in its namespace with its ServiceAccount, and its Worker names the Run that it was created for', () => {
  const ofStacks = { ...pool, spec: { ...pool.spec, podNamespace: 'Stack' as const } }
  const purpose = {
    run: 'shop/app-1',
    trustDomain: 'shop/oarlock-worker-deploy',
    pod: { namespace: 'shop', serviceAccountName: 'oarlock-worker-deploy' },
  }
  const { spec } = makeWorker(ofStacks, 'gpu-1', purpose)
  deepEqual(
    [spec.run, spec.trustDomain, spec.pod],
    ['shop/app-1', 'shop/oarlock-worker-deploy', { namespace: 'shop', serviceAccountName: 'oarlock-worker-deploy' }],
  )
  const own = { ...worker, spec: { ...spec, lifecycle: 'OneShot' as const } }
  const pod = makeWorkerPod({ pool: ofStacks, worker: own, environment: {} })
  deepEqual([pod.metadata.namespace, pod.spec.serviceAccountName], ['shop', 'oarlock-worker-deploy'])
})
