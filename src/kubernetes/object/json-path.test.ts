import assert from 'node:assert/strict'
import { test } from 'node:test'
import { compileJsonPath } from './index.ts'

const object = {
  spec: { a: 1, 'b.c': 2, nested: { a: 3 } },
  status: {
    conditions: [
      { type: 'Ready', status: 'True', n: 1 },
      { type: 'Other', status: 'False', n: 5 },
    ],
  },
  list: [{ x: 1 }, { x: 2 }, { x: 3 }],
}

for (const [path, want] of [
  ['.spec.a', [1]],
  ['{.spec.a}', [1]],
  ['$.spec.a', [1]],
  ['.spec.missing.deep', []],
  ['.spec.constructor', []],
  [".spec['b.c']", [2]],
  ['.spec["b.c"]', [2]],
  ['.spec.b\\.c', [2]],
  ['.status.conditions[?(@.type=="Ready")].status', ['True']],
  [".status.conditions[?(@.type == 'Other')].status", ['False']],
  ['.status.conditions[?(@.n>2)].type', ['Other']],
  ['.status.conditions[?(@.missing)].type', []],
  ['.list[0].x', [1]],
  ['.list[-1].x', [3]],
  ['.list[1:].x', [2, 3]],
  ['.list[*].x', [1, 2, 3]],
  ['..a', [1, 3]],
  ['.', [object]],
] as const) {
  test(`evaluates the JSONPath ${path}`, () => assert.deepEqual(compileJsonPath(path)(object), want))
}

for (const path of ['spec', '.spec[', '.spec[?(x)]', ".spec['a", '.list[a]', '.a..']) {
  test(`rejects the JSONPath ${path} with the position of the error`, () =>
    assert.throws(() => compileJsonPath(path), /^SyntaxError: json path ".*": expected .*, got /))
}

test('returns nothing for values that are not objects', () => {
  for (const value of [undefined, null, 1, 'x', []]) assert.deepEqual(compileJsonPath('.a[0].b')(value), [])
})
