import { deepEqual, equal } from 'node:assert/strict'
import { test } from 'node:test'
import { filterFields } from '../../protocol/index.ts'
import { toggleValue, valuesOf } from './filter-text.ts'

const fields = filterFields.stacks

for (const { name, text, value, want } of [
  { name: 'adds a term to an empty filter', text: '', value: 'Failed', want: 'state:failed' },
  {
    name: 'adds an alternative and keeps the rest',
    text: 'tenant:a state:ready web',
    value: 'Failed',
    want: 'tenant:a web state:ready,failed',
  },
  { name: 'removes the last value with its term', text: 'state:Failed "two words"', value: 'Failed', want: '"two words"' },
  { name: 'keeps a negated term', text: '-state:ready', value: 'Failed', want: '-state:ready state:failed' },
])
  test(name, () => equal(toggleValue(text, 'state', value, fields), want))

test('a filter that cannot be read has no values', () => {
  deepEqual(valuesOf('state:failed nothing:x', 'state', fields), [])
  deepEqual(valuesOf('state:failed,Ready -state:x', 'state', fields), ['failed', 'ready'])
})
