import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { entryOf, type StoredEntry, stringifyAsciiJson } from './entry.ts'
import { Table } from './table.ts'

function entry(name: string, revision: number): StoredEntry {
  const object = {
    apiVersion: 'v1',
    kind: 'Thing',
    metadata: { name, uid: name, resourceVersion: String(revision), creationTimestamp: '' },
  }
  return entryOf(1, object, revision, stringifyAsciiJson(object), undefined)
}

test('history is bounded in events, and its floor is the oldest revision a watch may start from (invariants 6 and 10)', () => {
  const table = new Table('things', { events: 8, bytes: 1e6 })
  for (let revision = 1; revision <= 9; revision++) table.apply(undefined, entry(`t${revision}`, revision), entry(`t${revision}`, revision))
  assert.equal(table.floor, 3, 'a quarter of the limit is dropped in one go')
  assert.equal(table.eventsSince(2), undefined)
  assert.deepEqual(
    table.eventsSince(3)?.map(event => event.revision),
    [4, 5, 6, 7, 8, 9],
  )
  assert.deepEqual(table.eventsSince(9), [])
})

test('history is bounded in bytes', () => {
  const size = entry('t1', 1).text.length
  const table = new Table('things', { events: 1_000, bytes: size * 4 })
  for (let revision = 1; revision <= 9; revision++) table.apply(undefined, entry(`t${revision}`, revision), entry(`t${revision}`, revision))
  assert.ok(table.eventsSince(table.floor)!.length <= 4)
})

test('old history is dropped, except the newest events of a table', () => {
  const table = new Table('things', { events: 1_000, bytes: 1e6 })
  for (let revision = 1; revision <= 9; revision++) table.apply(undefined, entry(`t${revision}`, revision), entry(`t${revision}`, revision))
  const remaining = () => table.eventsSince(table.floor)?.map(event => event.revision)
  table.compactHistory(3, 2)
  assert.deepEqual([table.floor, remaining()], [3, [4, 5, 6, 7, 8, 9]])
  table.compactHistory(9, 2)
  assert.deepEqual([table.floor, remaining(), table.eventsSince(6)], [7, [8, 9], undefined])
  table.compactHistory(9, 2)
  assert.deepEqual(remaining(), [8, 9])
})

test('a key that is removed and created again is listed once', () => {
  const table = new Table('things', { events: 8, bytes: 1e6 })
  const [a, b] = [entry('a', 1), entry('b', 2)]
  table.apply(undefined, b, b)
  table.apply(undefined, a, a)
  assert.deepEqual(
    table.snapshot().map(({ name }) => name),
    ['a', 'b'],
  )
  table.apply(a, undefined, a)
  table.apply(undefined, a, a)
  assert.deepEqual(
    table.snapshot().map(({ name }) => name),
    ['a', 'b'],
  )
})

test('snapshotAt agrees with recorded snapshots, as far back as history goes', () => {
  const change = fc.record({ name: fc.constantFrom('a', 'b', 'c', 'd'), isRemoval: fc.boolean() })
  fc.assert(
    fc.property(fc.array(change, { maxLength: 40 }), changes => {
      const table = new Table('things', { events: 16, bytes: 1e6 })
      const past: StoredEntry[][] = [[]]
      for (const [index, { name, isRemoval }] of changes.entries()) {
        const before = table.get(name)
        const next = entry(name, index + 1)
        if (!isRemoval) table.apply(before, next, next)
        else if (before) table.apply(before, undefined, next)
        past.push([...table.snapshot()])
      }
      for (const [revision, entries] of past.entries()) {
        assert.deepEqual(table.snapshotAt(revision), revision < table.floor ? undefined : entries, `at ${revision}`)
      }
    }),
  )
})
