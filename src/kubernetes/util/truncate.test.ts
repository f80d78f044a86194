import { equal } from 'node:assert/strict'
import { test } from 'node:test'
import { truncateText } from './truncate.ts'

test('truncateText cuts text above the limit only', () => {
  equal(truncateText('abc', 3), 'abc')
  equal(truncateText('abcd', 3), 'abc…')
})
