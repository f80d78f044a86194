import { deepEqual, doesNotThrow, throws } from 'node:assert/strict'
import { test } from 'node:test'
import type { StackSpec } from '../../../../api/index.ts'
import { rejectInterrupted } from './external-session.ts'

const urnOf = (name: string) => `urn:pulumi:dev::shop::aws:s3/bucket:Bucket::${name}`
const pending = (type: string, name: string) => ({
  type,
  resource: { urn: urnOf(name), custom: true, type: 'aws:s3/bucket:Bucket', inputs: {} },
})
const deployment = { pending_operations: [pending('creating', 'b'), pending('updating', 'a')] }

function setUp(pulumi: StackSpec['pulumi']) {
  const reported: unknown[] = []
  const context = {
    spec: { engine: 'pulumi' as const, ...(pulumi && { pulumi }) },
    pendingOperations: (...all: unknown[]) => void reported.push(all),
  }
  return { context, reported }
}

test('a Run that interrupted creations stop lists all interrupted operations of the backend', () => {
  const { context, reported } = setUp(undefined)
  throws(() => rejectInterrupted(context, deployment), { reason: 'PendingCreates', retryable: false, message: /aws:s3\/bucket:Bucket b;/ })
  const operations = [
    { type: 'creating', urn: urnOf('b') },
    { type: 'updating', urn: urnOf('a') },
  ]
  deepEqual(reported, [[operations, { isOwn: false }]])
})

test('a Run that may create them again lists nothing', () => {
  const { context, reported } = setUp({ pendingCreates: 'Clear' })
  doesNotThrow(() => rejectInterrupted(context, deployment))
  deepEqual(reported, [])
})
