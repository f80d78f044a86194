import assert from 'node:assert/strict'
import { test } from 'node:test'
import { computeKStatus } from './kstatus.ts'
import type { KubeObject } from './object.ts'

type Case = { name: string; api: string; kind: string; spec?: object; status?: object; metadata?: object; want: string }
const condition = (type: string, status: string, reason = '', message = '') => ({ type, status, reason, message })
const deployed = { observedGeneration: 1, replicas: 2, updatedReplicas: 2, readyReplicas: 2, availableReplicas: 2 }

const cases: Case[] = [
  { name: 'an object without status', api: 'v1', kind: 'ConfigMap', want: 'Current: the object exists' },
  {
    name: 'being deleted',
    api: 'v1',
    kind: 'ConfigMap',
    metadata: { deletionTimestamp: 'x', finalizers: ['a.b/c'] },
    want: 'Terminating: is being deleted, waiting for finalizers a.b/c',
  },
  {
    name: 'an old observedGeneration',
    api: 'x.y/v1',
    kind: 'Widget',
    metadata: { generation: 3 },
    status: { observedGeneration: 2 },
    want: 'InProgress: its controller has not observed generation 3 yet, only 2',
  },
  {
    name: 'Ready False',
    api: 'x.y/v1',
    kind: 'Widget',
    status: { conditions: [condition('Ready', 'False', 'Unreachable', 'timeout')] },
    want: 'InProgress: Ready is False: Unreachable: timeout',
  },
  {
    name: 'Ready Unknown',
    api: 'x.y/v1',
    kind: 'Widget',
    status: { conditions: [condition('Ready', 'Unknown')] },
    want: 'InProgress: Ready is Unknown',
  },
  {
    name: 'Ready True',
    api: 'x.y/v1',
    kind: 'Widget',
    status: { conditions: [condition('Ready', 'True')] },
    want: 'Current: the object exists',
  },
  {
    name: 'Stalled takes precedence over Ready',
    api: 'x.y/v1',
    kind: 'Widget',
    status: { conditions: [condition('Ready', 'True'), condition('Stalled', 'True', 'QuotaExceeded')] },
    want: 'Failed: Stalled is True: QuotaExceeded',
  },
  {
    name: 'Reconciling',
    api: 'x.y/v1',
    kind: 'Widget',
    status: { conditions: [condition('Reconciling', 'True', 'Updating')] },
    want: 'InProgress: Reconciling is True: Updating',
  },

  {
    name: 'no Deployment controller',
    api: 'apps/v1',
    kind: 'Deployment',
    spec: {},
    want: 'InProgress: no controller has reconciled it yet; does this cluster run Deployments?',
  },
  {
    name: 'rolling out',
    api: 'apps/v1',
    kind: 'Deployment',
    spec: { replicas: 2 },
    status: { ...deployed, updatedReplicas: 1 },
    want: 'InProgress: 1 of 2 replicas are updated',
  },
  {
    name: 'old replicas',
    api: 'apps/v1',
    kind: 'Deployment',
    spec: { replicas: 2 },
    status: { ...deployed, replicas: 3 },
    want: 'InProgress: 1 old replicas are still running',
  },
  {
    name: 'not available',
    api: 'apps/v1',
    kind: 'Deployment',
    spec: { replicas: 2 },
    status: { ...deployed, availableReplicas: 0 },
    want: 'InProgress: 0 of 2 replicas are available',
  },
  {
    name: 'all replicas ready',
    api: 'apps/v1',
    kind: 'Deployment',
    spec: { replicas: 2 },
    status: deployed,
    want: 'Current: 2 of 2 replicas are ready',
  },
  {
    name: 'deadline',
    api: 'apps/v1',
    kind: 'Deployment',
    spec: { replicas: 2 },
    status: { ...deployed, conditions: [condition('Progressing', 'False', 'ProgressDeadlineExceeded', 'no')] },
    want: 'Failed: Progressing is False: ProgressDeadlineExceeded: no',
  },
  { name: 'the extensions group is not apps', api: 'x.y/v1', kind: 'Deployment', want: 'Current: the object exists' },

  {
    name: 'too few replicas',
    api: 'apps/v1',
    kind: 'StatefulSet',
    spec: { replicas: 3 },
    status: { observedGeneration: 1, replicas: 1 },
    want: 'InProgress: 1 of 3 replicas exist',
  },
  {
    name: 'a new revision',
    api: 'apps/v1',
    kind: 'StatefulSet',
    spec: {},
    status: { observedGeneration: 1, replicas: 1, readyReplicas: 1, currentReplicas: 1, currentRevision: 'a', updateRevision: 'b' },
    want: 'InProgress: a new revision is rolling out',
  },
  {
    name: 'a partition',
    api: 'apps/v1',
    kind: 'StatefulSet',
    spec: { replicas: 3, updateStrategy: { rollingUpdate: { partition: 2 } } },
    status: { observedGeneration: 1, replicas: 3, readyReplicas: 3, updatedReplicas: 1 },
    want: 'Current: the partition is rolled out, 1 replicas are updated',
  },
  {
    name: 'OnDelete',
    api: 'apps/v1',
    kind: 'StatefulSet',
    spec: { updateStrategy: { type: 'OnDelete' } },
    want: 'Current: updates happen when Pods are deleted (OnDelete)',
  },

  {
    name: 'no DaemonSet controller',
    api: 'apps/v1',
    kind: 'DaemonSet',
    want: 'InProgress: no controller has reconciled it yet; does this cluster run DaemonSets?',
  },
  {
    name: 'on every node',
    api: 'apps/v1',
    kind: 'DaemonSet',
    status: { observedGeneration: 1, desiredNumberScheduled: 2, updatedNumberScheduled: 2, numberAvailable: 2, numberReady: 2 },
    want: 'Current: 2 of 2 Pods are ready',
  },

  {
    name: 'started',
    api: 'batch/v1',
    kind: 'Job',
    status: { startTime: 'x', active: 1 },
    want: 'Current: started: 1 active, 0 succeeded, 0 failed',
  },
  {
    name: 'failed',
    api: 'batch/v1',
    kind: 'Job',
    status: { startTime: 'x', conditions: [condition('Failed', 'True', 'BackoffLimitExceeded')] },
    want: 'Failed: Failed is True: BackoffLimitExceeded',
  },
  {
    name: 'complete',
    api: 'batch/v1',
    kind: 'Job',
    status: { startTime: 'x', succeeded: 1, conditions: [condition('Complete', 'True')] },
    want: 'Current: complete, 1 succeeded',
  },

  {
    name: 'ready',
    api: 'v1',
    kind: 'Pod',
    status: { phase: 'Running', conditions: [condition('Ready', 'True')] },
    want: 'Current: the Pod is ready',
  },
  {
    name: 'crash loop',
    api: 'v1',
    kind: 'Pod',
    status: { phase: 'Running', containerStatuses: [{ name: 'web', state: { waiting: { reason: 'CrashLoopBackOff' } } }] },
    want: 'Failed: container web is waiting: CrashLoopBackOff',
  },
  {
    name: 'no image',
    api: 'v1',
    kind: 'Pod',
    status: { phase: 'Pending', containerStatuses: [{ name: 'web', state: { waiting: { reason: 'ErrImagePull' } } }] },
    want: 'InProgress: container web is waiting: ErrImagePull',
  },
  { name: 'no kubelet', api: 'v1', kind: 'Pod', want: 'InProgress: no controller has reconciled it yet; does this cluster run Pods?' },

  { name: 'bound', api: 'v1', kind: 'PersistentVolumeClaim', status: { phase: 'Bound' }, want: 'Current: Bound' },
  { name: 'not bound', api: 'v1', kind: 'PersistentVolumeClaim', want: 'InProgress: phase is not set, not Bound' },
  { name: 'plain', api: 'v1', kind: 'Service', spec: {}, want: 'Current: the Service is ready' },
  {
    name: 'no address',
    api: 'v1',
    kind: 'Service',
    spec: { type: 'LoadBalancer' },
    want: 'InProgress: the load balancer has no address yet',
  },
  {
    name: 'established',
    api: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    status: { conditions: [condition('Established', 'True')] },
    want: 'Current: the kind is established',
  },
  {
    name: 'names not accepted',
    api: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    status: { conditions: [condition('NamesAccepted', 'False', 'Conflict')] },
    want: 'Failed: NamesAccepted is False: Conflict',
  },
]

for (const { name, api, kind, spec, status, metadata, want } of cases) {
  test(`${kind}, ${name}: ${want}`, () => {
    const object = { apiVersion: api, kind, metadata: { name: 'x', ...metadata }, ...(spec && { spec }), ...(status && { status }) }
    const result = computeKStatus(object as unknown as KubeObject)
    assert.equal(`${result.status}: ${result.message}`, want)
  })
}
