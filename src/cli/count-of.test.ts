import { deepEqual } from 'node:assert/strict'
import { test } from 'node:test'
import { countOf } from './count-of.ts'

test('a noun is plural unless the count is 1', () => {
  deepEqual(
    [0, 1, 2].map(count => countOf(count, 'resource')),
    ['0 resources', '1 resource', '2 resources'],
  )
})
