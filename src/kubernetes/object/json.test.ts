import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isDeepStrictEqual } from 'node:util'
import fc from 'fast-check'
import {
  cloneJson,
  endOfString,
  equalJson,
  exceededJsonLimit,
  exceededJsonTextLimit,
  firstLossyNumber,
  type JsonLimits,
  parseJsonStrict,
  setOwn,
  wideFields,
} from './index.ts'

const json = fc.jsonValue({ maxDepth: 4 })

test('equalJson agrees with node:util for JSON', () => {
  const near = fc.tuple(json, json).map(([a, b]) => [JSON.parse(JSON.stringify(a)), JSON.parse(JSON.stringify(b))])
  fc.assert(
    fc.property(near, ([a, b]) => {
      assert.equal(equalJson(a, b), isDeepStrictEqual(a, b))
      assert.equal(equalJson(a, cloneJson(a)), true)
      assert.deepEqual(cloneJson(a), a)
    }),
  )
})

test('equalJson ignores the order of keys and fields set to undefined', () => {
  assert.equal(equalJson({ a: 1, b: [1, { c: null }] }, { b: [1, { c: null }], a: 1 }), true)
  assert.equal(equalJson({ a: 1, b: undefined }, { a: 1 }), true)
  assert.equal(equalJson({ a: undefined, b: 1 }, { a: 1, b: 1 }), false)
  assert.equal(equalJson({ constructor: Object }, {}), false)
  assert.equal(equalJson([], {}), false)
})

test('cloneJson keeps an own __proto__ key', () => {
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
  test(`finds ${duplicates.length} duplicate keys in ${text}`, () => {
    assert.deepEqual(parseJsonStrict(text), { value: JSON.parse(text), duplicates })
  })
}

test('finds no duplicate keys in serialized JSON', () => {
  fc.assert(fc.property(json, value => assert.deepEqual(parseJsonStrict(JSON.stringify(value, null, 1)).duplicates, [])))
})

test('checks the depth without walking beyond the limit', () => {
  const limits = (depth: number, nodes = 100) => ({ depth, nodes })
  for (const exceeded of [
    exceededJsonLimit,
    (value: unknown, of: { depth: number; nodes: number }) => exceededJsonTextLimit(JSON.stringify(value), of),
  ]) {
    assert.equal(exceeded({ a: [{ b: 1 }] }, limits(3)), undefined)
    assert.equal(exceeded({ a: [{ b: 1 }] }, limits(2)), 'depth')
    assert.equal(exceeded(JSON.parse('['.repeat(5_000) + ']'.repeat(5_000)), limits(200, 9_000)), 'depth')
    assert.equal(exceeded([1, 2, { a: 1, b: 2 }], limits(9, 6)), undefined)
    assert.equal(exceeded([1, 2, { a: 1, b: 2 }], limits(9, 4)), 'nodes')
    assert.equal(exceeded('x', limits(0)), undefined)
  }
  const brackets = JSON.stringify({ 'a"[[[': '\\"]]{{{,,,\\' })
  assert.equal(exceededJsonTextLimit(brackets, limits(1, 2)), undefined, 'brackets within a string do not count')
  assert.equal(exceededJsonTextLimit('["[[[', limits(1, 2)), undefined, 'what is no JSON is for the parser')
})

for (const exceeded of [exceededJsonLimit, (value: unknown, of: JsonLimits) => exceededJsonTextLimit(JSON.stringify(value, null, 1), of)]) {
  const fields = (count: number, prefix = 'k') => Object.fromEntries(Array.from({ length: count }, (_, i) => [`${prefix}${i}`, '":{']))
  const many = { depth: 9, nodes: 1_000_000 }
  test(`counts different names in ${exceeded === exceededJsonLimit ? 'a value' : 'a text'}`, () => {
    const twice = [fields(700), { a: fields(700) }]
    assert.equal(exceeded(twice, { ...many, names: 701 }), undefined)
    assert.equal(exceeded(twice, { ...many, names: 700 }), 'names')
    assert.equal(exceeded([fields(700), fields(700, 'l')], { ...many, names: 1_399 }), 'names')
  })
  test(`counts the fields of wide objects in ${exceeded === exceededJsonLimit ? 'a value' : 'a text'}`, () => {
    const wide = [fields(wideFields + 1), { a: fields(wideFields + 10) }, fields(wideFields)]
    assert.equal(exceeded(wide, { ...many, wide: 2 * wideFields + 11 }), undefined)
    assert.equal(exceeded(wide, { ...many, wide: 2 * wideFields + 10 }), 'wide')
    assert.equal(exceeded([Array(5_000).fill('a')], { ...many, wide: 1, names: 1 }), undefined, 'items are not fields')
  })
}

test('the end of a string is found after any escapes', () => {
  fc.assert(
    fc.property(fc.stringMatching(/^[\\"a]{0,12}$/), text => {
      const json = JSON.stringify(text)
      assert.equal(endOfString(`x${json}"`, 1), json.length)
      assert.equal(endOfString(json.slice(0, -1), 0), -1)
    }),
  )
})

test('finds numbers that JavaScript cannot store exactly', () => {
  const kept = ['1', '-0', '1.5', '9007199254740991', '-9007199254740992', '1e300', '0.1000000000000000055', '18446744073709551616', '1e21']
  for (const number of kept) assert.equal(firstLossyNumber(`{"a":[${number}]}`), undefined, number)
  for (const number of ['9007199254740993', '9223372036854775807', '-9223372036854775808', '4611686018427387904', '1e400', '-1E+999']) {
    assert.equal(firstLossyNumber(`{"1234567890123456789":"9007199254740993","a":[1,${number}]}`), number)
  }
})
