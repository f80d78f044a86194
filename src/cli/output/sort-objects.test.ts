import { deepEqual, throws } from 'node:assert/strict'
import { test } from 'node:test'
import { sortByPath } from './sort-objects.ts'

const sorted = (path: string, ...objects: object[]) => sortByPath(objects, path, object => object)

test('sorts numbers as numbers, texts by their characters, and objects without the field first', () => {
  deepEqual(sorted('.n', { n: 10 }, { n: 9 }, {}), [{}, { n: 9 }, { n: 10 }])
  deepEqual(sorted('{.a.b}', { a: { b: 'r-9' } }, { a: { b: 'r-10' } }), [{ a: { b: 'r-10' } }, { a: { b: 'r-9' } }])
  deepEqual(
    sorted('t', { t: '2026-02-01T00:00:00Z' }, { t: '2026-01-31T00:00:00Z' }).map(({ t }: { t?: string }) => t?.slice(5, 7)),
    ['01', '02'],
  )
  deepEqual(sorted('.b', { b: true }, { b: false }), [{ b: false }, { b: true }])
})

test('keeps the order of equal objects', () => {
  deepEqual(sorted('.n', { n: 1, x: 'b' }, { n: 1, x: 'a' }), [
    { n: 1, x: 'b' },
    { n: 1, x: 'a' },
  ])
})

test('rejects a field that no object has, one that is not a plain value, and what is not a path', () => {
  throws(() => sorted('.x', { n: 1 }), /no object has the field \.x/)
  throws(() => sorted('.n', { n: {} }), /is not a text, a number or a boolean/)
  throws(() => sorted('', { n: 1 }), /is not the path of a field/)
  deepEqual(sorted('.x'), [])
})
