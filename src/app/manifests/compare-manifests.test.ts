import { equal } from 'node:assert/strict'
import { test } from 'node:test'
import { contains } from './compare-manifests.ts'

for (const [name, found, wanted, expected] of [
  ['equal values', { a: 1 }, { a: 1 }, true],
  ['another value', { a: 2 }, { a: 1 }, false],
  ['a value of another type', { a: '1' }, { a: 1 }, false],
  ['a field that the server has added', { a: 1, b: 2 }, { a: 1 }, true],
  ['a missing field', {}, { a: 1 }, false],
  ['a field that is not set', {}, { a: undefined }, true],
  ['an empty list that the server leaves out', {}, { a: [] }, true],
  ['an empty object that the server leaves out', {}, { a: {} }, true],
  ['an empty list that has become filled', { a: [1] }, { a: [] }, false],
  ['fields added to an item of a list', { a: [{ b: 1, c: 2 }] }, { a: [{ b: 1 }] }, true],
  ['an item added to a list', { verbs: ['get', '*'] }, { verbs: ['get'] }, false],
  ['an item removed from a list', { verbs: [] }, { verbs: ['get'] }, false],
  ['another order in a list', { verbs: ['b', 'a'] }, { verbs: ['a', 'b'] }, false],
  ['a list in place of an object', { a: [] }, { a: { b: 1 } }, false],
  ['a text in place of a list', { a: 'get' }, { a: ['get'] }, false],
  ['null in place of an object', { a: null }, { a: { b: 1 } }, false],
] as const)
  test(`${name}: ${expected ? 'no difference' : 'a difference'}`, () => equal(contains(found, wanted), expected))
