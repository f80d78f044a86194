import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isDeepStrictEqual } from 'node:util'
import fc from 'fast-check'
import { cloneJson, equalJson, exceedsDepth, parseJsonStrict, setOwn } from './index.ts'

const json = fc.jsonValue({ maxDepth: 4 })

test('equality is what node:util says of JSON', () => {
  const near = fc.tuple(json, json).map(([a, b]) => [JSON.parse(JSON.stringify(a)), JSON.parse(JSON.stringify(b))])
  fc.assert(
    fc.property(near, ([a, b]) => {
      assert.equal(equalJson(a, b), isDeepStrictEqual(a, b))
      assert.equal(equalJson(a, cloneJson(a)), true)
      assert.deepEqual(cloneJson(a), a)
    }),
  )
})

test('equality minds neither the order of keys nor fields set to undefined', () => {
  assert.equal(equalJson({ a: 1, b: [1, { c: null }] }, { b: [1, { c: null }], a: 1 }), true)
  assert.equal(equalJson({ a: 1, b: undefined }, { a: 1 }), true)
  assert.equal(equalJson({ a: undefined, b: 1 }, { a: 1, b: 1 }), false)
  assert.equal(equalJson({ constructor: Object }, {}), false)
  assert.equal(equalJson([], {}), false)
})

test('a copy keeps an own __proto__ key a key', () => {
  const hostile = JSON.parse('{"__proto__":{"admin":true},"a":{"__proto__":1}}')
  const copy = cloneJson(hostile)
  assert.equal(copy.admin, undefined)
  assert.equal(Object.getPrototypeOf(copy), Object.prototype)
  assert.equal(JSON.stringify(copy), JSON.stringify(hostile))
  const target = {}
  setOwn(target, '__proto__', 1 as never)
  assert.equal(JSON.stringify(target), '{"__proto__":1}')
})

for (const [text, duplicates] of [
  ['{"a":1,"b":{"c":[{"x":1},{"x":2}]}}', []],
  ['{"a":1,"a":2}', ['a']],
  ['{"a":{"b":1,"b":2,"b":3},"c":[0,{"d":":","d":"\\"{"}]}', ['a.b', 'a.b', 'c[1].d']],
  ['{"a\\u0062":1,"ab":2}', ['ab']],
  ['{"a":"\\\\","b":"\\\\\\"a\\":","b":1}', ['b']],
  ['[{"a":1,"a":1}]', ['[0].a']],
  [' "a:b" ', []],
] as const) {
  test(`strict reading of ${text} finds ${duplicates.length} duplicates`, () => {
    assert.deepEqual(parseJsonStrict(text), { value: JSON.parse(text), duplicates })
  })
}

test('no JSON made from a value has duplicates', () => {
  fc.assert(fc.property(json, value => assert.deepEqual(parseJsonStrict(JSON.stringify(value, null, 1)).duplicates, [])))
})

test('depth is judged without walking past the bound', () => {
  assert.equal(exceedsDepth({ a: [{ b: 1 }] }, 3), false)
  assert.equal(exceedsDepth({ a: [{ b: 1 }] }, 2), true)
  assert.equal(exceedsDepth(JSON.parse('['.repeat(5_000) + ']'.repeat(5_000)), 200), true)
  assert.equal(exceedsDepth('x', 0), false)
})
