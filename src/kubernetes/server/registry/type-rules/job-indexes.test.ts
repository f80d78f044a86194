import { deepEqual, equal } from 'node:assert/strict'
import { test } from 'node:test'
import { firstCommonIndex, readIndexes } from './job-indexes.ts'

for (const [text, expected] of [
  ['', { total: 0 }],
  ['0', { total: 1 }],
  ['0,2-4,9', { total: 5 }],
  ['10', { reason: 'too large index: "10"' }],
  ['x', { reason: 'cannot convert string to integer for index: "x"' }],
  ['3,1', { reason: 'non-increasing order, previous: 3, current: 1' }],
  ['4-2', { reason: 'non-increasing order, previous: 4, current: 2' }],
  [
    '1-2-3',
    { reason: 'the fragment "1-2-3" violates the requirement that an index interval can have at most two parts separated by \'-\'' },
  ],
] as const) {
  test(`readIndexes(${JSON.stringify(text)}, 10)`, () => deepEqual(readIndexes(text, 10), expected))
}

for (const [a, b, index] of [
  ['0-3', '4-6', undefined],
  ['0,5-7', '1-4,7', 7],
  ['0-9', '3', 3],
  ['', '1', undefined],
  ['x,2', '2', 2],
] as const) {
  test(`firstCommonIndex(${JSON.stringify(a)}, ${JSON.stringify(b)}) is ${index}`, () => equal(firstCommonIndex(a, b, 10), index))
}
