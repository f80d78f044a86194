import { deepEqual, equal } from 'node:assert/strict'
import { test } from 'node:test'
import { formatInterruption, formatPendingOperations, listPendingOperations } from './pending-operations.ts'

const operation = (index: number, type = 'creating') => ({ type, urn: `urn:pulumi:dev::shop::web:Group$aws:s3/bucket:Bucket::b${index}` })
const many = (count: number) => Array.from({ length: count }, (_, index) => operation(index))

test('a status without such operations has no list', () => equal(listPendingOperations([]), undefined))

test('a status lists 20 operations and the number of all', () => {
  deepEqual(listPendingOperations([operation(1)]), { count: 1, operations: [operation(1)] })
  const { count, operations } = listPendingOperations(many(30))!
  deepEqual([count, operations.length], [30, 20])
  equal(listPendingOperations(many(20), 500)?.count, 500)
  equal(listPendingOperations([{ type: 'creating', urn: 'u'.repeat(5_000) }])?.operations[0]?.urn.length, 1_024)
})

test('a message names 5 operations', () => {
  equal(
    formatPendingOperations({ count: 1, operations: [operation(1, 'updating')] }),
    '1 operation was interrupted, and its result is unknown: updating aws:s3/bucket:Bucket b1',
  )
  const seven = formatPendingOperations({ count: 7, operations: many(7) })
  equal(seven.startsWith('7 operations were interrupted, and their results are unknown: creating aws:s3/bucket:Bucket b0, '), true)
  equal(seven.endsWith('b4 and 2 more'), true)
  equal(formatPendingOperations({ count: 1, operations: [{ type: 'creating', urn: 'short' }] }).endsWith('creating short'), true)
})

test('a message of terraform and opentofu names resources that may exist twice', () => {
  const creating = (count: number) =>
    listPendingOperations(Array.from({ length: count }, (_, index) => ({ type: 'creating', urn: `aws_instance.a["a::b::c::${index}"]` })))!
  equal(
    formatInterruption('opentofu', creating(1)),
    '1 creation was in progress, and the resource may exist twice after the next Run: aws_instance.a["a::b::c::0"]',
  )
  equal(formatInterruption('terraform', creating(7)).endsWith('aws_instance.a["a::b::c::4"] and 2 more'), true)
  equal(
    formatInterruption('pulumi', { count: 1, operations: [operation(1)] }),
    formatPendingOperations({ count: 1, operations: [operation(1)] }),
  )
})

test('an interrupted or lost Run of engine ansible names the tasks with their hosts', () => {
  const operations = [{ type: 'running', urn: 'web1: Restart the database' }]
  equal(
    formatInterruption('ansible', listPendingOperations(operations)!),
    '1 operation was interrupted, and its result is unknown: running web1: Restart the database',
  )
})
