import { deepEqual, doesNotThrow, equal, throws } from 'node:assert/strict'
import { test } from 'node:test'
import { formatPending, rejectPendingCreates, withoutPendingCreates } from './pending-creates.ts'

const resource = (name: string) => ({ urn: `urn:pulumi:dev::shop::aws:s3/bucket:Bucket::${name}` })
const deployment = {
  resources: [resource('a')],
  pending_operations: [
    { type: 'creating', resource: resource('b') },
    { type: 'updating', resource: resource('a') },
    { type: 'creating', resource: resource('c') },
  ],
}

test('a Stack does not continue while it is unknown whether resources exist', () => {
  throws(() => rejectPendingCreates({ spec: { engine: 'pulumi' } }, deployment), {
    ...{ reason: 'PendingCreates', retryable: false },
    message:
      'the creation of 2 resources was interrupted, and it is unknown whether the provider finished: aws:s3/bucket:Bucket b, aws:s3/bucket:Bucket c; delete what exists there, then set spec.pulumi.pendingCreates to Clear, which creates them again',
  })
  doesNotThrow(() => rejectPendingCreates({ spec: { engine: 'pulumi', pulumi: { pendingCreates: 'Clear' } } }, deployment))
  doesNotThrow(() =>
    rejectPendingCreates({ spec: { engine: 'pulumi' } }, { pending_operations: deployment.pending_operations.slice(1, 2) }),
  )
})

test('clearing removes interrupted creations and nothing else', () => {
  deepEqual(withoutPendingCreates({ version: 3, features: ['x'], deployment }), {
    ...{ version: 3, features: ['x'] },
    deployment: { ...deployment, pending_operations: deployment.pending_operations.slice(1, 2) },
  })
  equal(withoutPendingCreates({ version: 3, deployment: { pending_operations: [] } }), undefined)
  equal(withoutPendingCreates({ version: 3, deployment: null }), undefined)
})

test('at most 10 resources are listed', () => {
  const urns = Array.from({ length: 12 }, (_, index) => resource(`${index}`).urn)
  equal(formatPending(urns).endsWith('aws:s3/bucket:Bucket 9 and 2 more'), true)
})
