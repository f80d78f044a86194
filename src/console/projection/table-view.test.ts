import { deepEqual, match } from 'node:assert/strict'
import { test } from 'node:test'
import { tableView } from './table-view.ts'

const row = (key: string, state: string, engine: string, resources?: number) => ({ key, name: key, state, engine, resources })
const rows = [row('d', 'Ready', 'helm', 3), row('b', 'Failed', 'helm', 1), row('a', 'Ready', 'tofu'), row('c', 'Ready', 'tofu', 3)]
const keysOf = (query: Parameters<typeof tableView>[2]) => tableView('stacks', rows, query, 0).rows.map(({ key }) => key)

test('rows are sorted in both directions; equal ones by key, those without a value last', () => {
  deepEqual(keysOf({}), ['a', 'b', 'c', 'd'])
  deepEqual(keysOf({ sort: '-key' }), ['d', 'c', 'b', 'a'])
  deepEqual(keysOf({ sort: 'resources' }), ['b', 'c', 'd', 'a'])
  deepEqual(keysOf({ sort: '-resources' }), ['c', 'd', 'b', 'a'])
})

test('a page is a part of the rows; beyond the end it is the last one', () => {
  deepEqual(keysOf({ offset: 1, limit: 2 }), ['b', 'c'])
  deepEqual(keysOf({ offset: 9, limit: 3 }), ['b', 'c', 'd'])
})

test('counts of a field are of the rows that the other terms of the filter match', () => {
  const { facts } = tableView('stacks', rows, { filter: 'state:failed engine:helm' }, 0)
  deepEqual([facts.total, facts.all], [1, 4])
  deepEqual(facts.counts.state, { Failed: 1, Ready: 1 })
  deepEqual(facts.counts.engine, { helm: 1 })
  deepEqual(facts.counts.tenant, {})
})

test('an invalid filter shows no row, and why', () => {
  const { facts, rows: shown } = tableView('stacks', rows, { filter: 'color:red' }, 0)
  deepEqual(shown, [])
  match(facts.invalid ?? '', /unknown field "color"/)
})
