import { deepEqual } from 'node:assert/strict'
import { test } from 'node:test'
import { interruptedOperations } from './interrupted-operations.ts'

test('creations of components, providers and the stack itself have created nothing outside of the state', () => {
  const operation = (type: string, urn: string, custom: boolean) => ({ type, resource: { urn: `urn:pulumi:dev::shop::${urn}`, custom } })
  const bucket = operation('creating', 'web:Group$aws:s3/bucket:Bucket::logs', true)
  const provider = operation('creating', 'pulumi:providers:aws::default', true)
  const component = operation('creating', 'web:Group::group', false)
  const stack = operation('creating', 'pulumi:pulumi:Stack::shop-dev', false)
  const deleted = operation('deleting', 'pulumi:providers:aws::old', true)
  deepEqual(interruptedOperations({ pending_operations: [bucket, provider, component, stack, deleted] }), [bucket, deleted])
  deepEqual(interruptedOperations({}), [])
})
