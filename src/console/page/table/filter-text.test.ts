import { deepEqual, equal } from 'node:assert/strict'
import { test } from 'node:test'
import { completionsOf, toggleValue, valuesOf } from './filter-text.ts'

test('a value is added to the term of its field and removed from it; other terms and words stay', () => {
  equal(toggleValue('', 'state', 'Failed'), 'state:failed')
  equal(toggleValue('engine:tofu web', 'state', 'Failed'), 'state:failed engine:tofu web')
  equal(toggleValue('state:failed web', 'state', 'Ready'), 'state:failed,ready web')
  equal(toggleValue('state:failed,ready "two words"', 'state', 'failed'), 'state:ready "two words"')
  equal(toggleValue('state:failed', 'state', 'Failed'), '')
  equal(toggleValue('', 'tenant', 'Team A'), 'tenant:"team a"')
  equal(toggleValue('-state:failed', 'state', 'Ready'), 'state:ready -state:failed')
})

test('the values of a field are those of its term', () => {
  deepEqual(valuesOf('State:Failed,ready x', 'state'), ['failed', 'ready'])
  deepEqual(valuesOf('-state:failed', 'state'), [])
  deepEqual(valuesOf('tenant:"team a"', 'tenant'), ['team a'])
})

test('the last token completes to fields, then to the values that rows have', () => {
  const fields = ['state', 'stack', 'engine']
  const counts = { state: { Ready: 4, Failed: 2 }, tenant: {} }
  const texts = (text: string) => completionsOf(text, fields, counts).map(one => one.text)
  deepEqual(texts('st'), ['state:', 'stack:'])
  deepEqual(texts('web -e'), ['web -engine:'])
  deepEqual(texts('state:'), ['state:Ready ', 'state:Failed '])
  deepEqual(texts('a state:ready,f'), ['a state:ready,Failed '])
  deepEqual(texts('state:ready'), [])
  deepEqual(texts('unknown:'), [])
  deepEqual(texts('state:ready '), ['state:ready state:', 'state:ready stack:', 'state:ready engine:'])
})
