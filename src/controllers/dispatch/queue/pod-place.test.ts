import { deepEqual, match } from 'node:assert/strict'
import { test } from 'node:test'
import type { WorkerPoolSpec } from '../../../api/index.ts'
import { testPool } from '../objects.testing.ts'
import { podPlaceOf } from './pod-place.ts'

const tenant = { name: 'a', uid: 'uid-a' }
const place = (spec: Partial<WorkerPoolSpec>, requested?: string, level: 'Pod' | 'Process' = 'Pod') =>
  podPlaceOf({ pool: testPool('p', spec), tenant, namespace: 'shop', isolation: level === 'Pod' ? level : undefined, requested })

test('Pods of a pool with podNamespace Stack are for one namespace and ServiceAccount, whatever the level', () => {
  const stack = { mode: 'Pod', podNamespace: 'Stack' } as const
  deepEqual(place(stack, 'oarlock-worker-deploy', 'Process'), {
    pod: { namespace: 'shop', serviceAccountName: 'oarlock-worker-deploy' },
    trustDomain: 'shop/oarlock-worker-deploy',
  })
  deepEqual(place(stack), { pod: { namespace: 'shop', serviceAccountName: undefined }, trustDomain: 'shop/' })
})

test('Pods that execute several Runs are for the Tenant of a Run of level Pod; those that execute one are for any', () => {
  deepEqual(place({ mode: 'Pod', lifecycle: 'Warm' }), { trustDomain: 'process-tenant-uid-a' })
  deepEqual(place({ mode: 'Pod', slots: 2 }), { trustDomain: 'process-tenant-uid-a' })
  deepEqual(place({ mode: 'Pod', lifecycle: 'Warm' }, undefined, 'Process'), {})
  deepEqual(place({ mode: 'Pod' }), {})
  deepEqual(place({ mode: 'External', lifecycle: 'Warm' }), {})
})

test('a ServiceAccount is rejected where no Pod can have it, with what to do', () => {
  for (const spec of [{ mode: 'Pod' }, { mode: 'Process' }] as const)
    match(
      place(spec, 'oarlock-worker-deploy').violation ?? '',
      /spec.serviceAccountName: oarlock-worker-deploy cannot be used, because WorkerPool p .* choose another pool or remove/,
    )
})
