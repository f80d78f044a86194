import { deepEqual, equal } from 'node:assert/strict'
import { test } from 'node:test'
import { registeredBy, registrationOf } from './lease-registration.ts'
import { annotations } from './names.ts'
import type { Worker } from './worker.ts'

const lease = (status: string | undefined, { owner = 'Worker', holder = 'pod-1' }: { owner?: string; holder?: string } = {}) =>
  ({
    metadata: {
      name: 'w',
      ownerReferences: [{ apiVersion: 'oarlock.dev/v1alpha1', kind: owner, name: 'w', uid: 'worker-1' }],
      ...(status !== undefined && { annotations: { [annotations.workerStatus]: status } }),
    },
    spec: { holderIdentity: holder },
  }) as unknown as Parameters<typeof registrationOf>[0]

const worker = (changes: Partial<Worker['spec']> = {}, status: Worker['status'] = { phase: 'Pending' }) =>
  ({
    metadata: { name: 'w', uid: 'worker-1' },
    spec: {
      ...{ pool: 'p', slots: 1, lifecycle: 'OneShot', start: true },
      pod: { namespace: 'oarlock-system', serviceAccountName: 'oarlock-worker' },
      ...changes,
    },
    status,
  }) as unknown as Worker

test('a Lease with a status registers its Worker as the Pod that holds it', () => {
  const text = JSON.stringify({
    phase: 'Busy',
    isolation: ['Pod'],
    engines: { opentofu: '1.10' },
    capacity: { memory: '1Gi' },
    host: 'h',
    pid: 7,
  })
  const registration = registrationOf(lease(text))
  const status = {
    phase: 'Ready',
    runs: [],
    isolation: ['Pod'],
    engines: { opentofu: '1.10' },
    capacity: { memory: '1Gi' },
    host: 'h',
    pid: 7,
  }
  deepEqual(registration, { workerUid: 'worker-1', podUid: 'pod-1', status })
  const registered = registeredBy(worker({}, { phase: 'Pending', reason: 'Unschedulable', message: 'no node' }), registration)
  equal(registered.spec.pod?.uid, 'pod-1')
  deepEqual(registered.status, status)
})

for (const [why, text, options] of [
  ['has no status', undefined, {}],
  ['has no JSON', '{', {}],
  ['has an engine without a version', '{"engines":{"opentofu":7}}', {}],
  ['has an unknown isolation level', '{"isolation":["Vault"]}', {}],
  ['has a capacity that is no quantity', '{"capacity":{"cpu":"many"}}', {}],
  ['belongs to no Worker', '{}', { owner: 'Pod' }],
  ['has no holder', '{}', { holder: '' }],
] as const)
  test(`a Lease that ${why} registers nothing`, () => equal(registrationOf(lease(text, options)), undefined))

for (const [why, other] of [
  ['has registered itself', worker({}, { phase: 'Busy' })],
  ['has failed', worker({}, { phase: 'Failed' })],
  ['is not a Pod', worker({ pod: undefined as never })],
  ['is another one of this name', { ...worker(), metadata: { ...worker().metadata, uid: 'worker-2' } }],
] as const)
  test(`a Worker that ${why} is not changed by the Lease`, () => equal(registeredBy(other, registrationOf(lease('{}'))), other))
