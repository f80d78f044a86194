import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { StructuralSchema } from '../object/index.ts'
import { applyDefaults, pruneUnknown, structuralErrors, validateSchema } from './index.ts'

const string: StructuralSchema = { type: 'string' }
const at = (spec: StructuralSchema): StructuralSchema => ({ type: 'object', properties: { spec } })

for (const [spec, value, want] of [
  [{ type: 'string', enum: ['a', 'b'] }, 'x', ['spec: Unsupported value: "x": supported values: "a", "b"']],
  [{ type: 'integer' }, 'x', ['spec: Invalid value: "string": spec in body must be of type integer: "string"']],
  [{ type: 'integer' }, 1.5, ['spec: Invalid value: "number": spec in body must be of type integer: "number"']],
  [string, null, ['spec: Invalid value: "null": spec in body must be of type string: "null"']],
  [{ type: 'string', nullable: true, enum: ['a'] }, null, ['spec: Unsupported value: null: supported values: "a"']],
  [{ type: 'string', nullable: true }, null, []],
  [
    { 'x-kubernetes-int-or-string': true },
    true,
    ['spec: Invalid value: "boolean": spec in body must be of type integer,string: "boolean"'],
  ],
  [{ type: 'integer', minimum: 1 }, 0, ['spec: Invalid value: 0: spec in body should be greater than or equal to 1']],
  [{ type: 'integer', maximum: 1, exclusiveMaximum: true }, 1, ['spec: Invalid value: 1: spec in body should be less than 1']],
  [{ type: 'number', multipleOf: 0.1 }, 0.3, []],
  [
    { type: 'integer', format: 'int32' },
    2 ** 31,
    ['spec: Invalid value: 2147483648: Checked value must be of type integer with format int32 (spec)'],
  ],
  [{ type: 'string', maxLength: 2 }, '😀😀', []],
  [{ type: 'string', maxLength: 2 }, 'abc', ['spec: Too long: may not be more than 2 bytes']],
  [{ type: 'string', minLength: 2 }, '😀', ['spec: Invalid value: "😀": spec in body should be at least 2 chars long']],
  [{ type: 'string', pattern: '^a+$' }, 'b', ['spec: Invalid value: "b": spec in body should match \'^a+$\'']],
  [{ type: 'string', pattern: '\\A[[:alpha:]]+\\z' }, 'abc', []],
  [{ type: 'string', pattern: '(?i)^(?P<x>AB)$' }, 'ab', []],
  [{ type: 'string', format: 'date-time' }, 'x', ['spec: Invalid value: "x": spec in body must be of type date-time: "x"']],
  [{ type: 'string', format: 'date-time' }, '2026-02-28T10:00:00.5+02:00', []],
  [{ type: 'string', format: 'duration' }, '1h30m', []],
  [{ type: 'string', format: 'never-heard-of' }, 'x', []],
  [{ type: 'array', items: string, maxItems: 1 }, ['a', 'b'], ['spec: Too many: 2: must have at most 1 items']],
  [{ type: 'array', items: string, 'x-kubernetes-list-type': 'set' }, ['a', 'b', 'a'], ['spec[2]: Duplicate value: "a"']],
  [
    { type: 'array', items: at(string), 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['spec'] },
    [{ spec: 'a' }, { spec: 'a' }],
    ['spec[1]: Duplicate value: {"spec":"a"}'],
  ],
  [{ type: 'object', required: ['a'], properties: { a: string } }, {}, ['spec.a: Required value']],
  [{ type: 'object', required: ['constructor'], properties: { constructor: string } }, {}, ['spec.constructor: Required value']],
  [
    { type: 'object', additionalProperties: string },
    { 'a.b': 1 },
    ['spec.a.b: Invalid value: "integer": spec.a.b in body must be of type string: "integer"'],
  ],
  [
    { type: 'array', items: at(string) },
    [{}, { spec: 1 }],
    ['spec[1].spec: Invalid value: "integer": spec[1].spec in body must be of type string: "integer"'],
  ],
  [{ type: 'object', properties: { a: string, b: string }, oneOf: [{ required: ['a'] }, { required: ['b'] }] }, { a: 'x' }, []],
  [
    { type: 'object', properties: { a: string, b: string }, oneOf: [{ required: ['a'] }, { required: ['b'] }] },
    { a: 'x', b: 'y' },
    ['spec: Invalid value: "": "spec" must validate one and only one schema (oneOf). Found 2 valid alternatives'],
  ],
  [{ type: 'string', not: { enum: ['a'] } }, 'a', ['spec: Invalid value: "": "spec" must not validate the schema (not)']],
  [
    { type: 'object', 'x-kubernetes-embedded-resource': true, 'x-kubernetes-preserve-unknown-fields': true },
    { apiVersion: 'v1' },
    ['spec.kind: Required value'],
  ],
] as [StructuralSchema, unknown, string[]][]) {
  test(`validates ${JSON.stringify(value)} against ${JSON.stringify(spec).slice(0, 90)}`, () => {
    const causes = validateSchema(at(spec), { spec: value }, '')
    assert.deepEqual(
      causes.map(({ field, message }) => `${field}: ${message}`),
      want,
    )
  })
}

test('does not reject unchanged values (ratcheting)', () => {
  const schema = at({
    type: 'array',
    'x-kubernetes-list-type': 'map',
    'x-kubernetes-list-map-keys': ['name'],
    items: { type: 'object', properties: { name: string, size: { type: 'integer', maximum: 9 } } },
  })
  const item = (name: string, size: number) => ({ name, size })
  const causes = validateSchema(schema, { spec: [item('b', 20), item('a', 11), item('new', 12)] }, '', {
    oldValue: { spec: [item('a', 10), item('b', 20)] },
  })
  assert.deepEqual(
    causes.map(({ field }) => field),
    ['spec[1].size', 'spec[2].size'],
  )
})

test('limits the causes for a hostile object', () => {
  const schema = at({ type: 'array', items: string })
  assert.equal(validateSchema(schema, { spec: Array.from({ length: 10_000 }, () => 1) }, '').length, 200)
})

for (const [name, schema, value, want, pruned] of [
  [
    'unknown fields, with their paths',
    at({ type: 'object', properties: { a: string } }),
    { foo: 1, spec: { a: 'x', b: 1 } },
    { spec: { a: 'x' } },
    ['foo', 'spec.b'],
  ],
  ['in lists', at({ type: 'array', items: at(string) }), { spec: [{ spec: 'a' }, { x: 1 }] }, { spec: [{ spec: 'a' }, {}] }, ['spec[1].x']],
  [
    'no field below x-kubernetes-preserve-unknown-fields',
    at({ type: 'object', 'x-kubernetes-preserve-unknown-fields': true, properties: { a: at(string) } }),
    { spec: { z: { y: 1 }, a: { q: 1 } } },
    { spec: { z: { y: 1 }, a: {} } },
    ['spec.a.q'],
  ],
  [
    'unknown fields of map values, but no keys',
    at({ type: 'object', additionalProperties: at(string) }),
    { spec: { k: { spec: 'a', z: 1 } } },
    { spec: { k: { spec: 'a' } } },
    ['spec.k.z'],
  ],
  [
    'unknown fields of embedded resources, but not their metadata',
    at({ type: 'object', 'x-kubernetes-embedded-resource': true, properties: { data: string } }),
    { spec: { apiVersion: 'v1', kind: 'A', metadata: { name: 'a' }, x: 1 } },
    { spec: { apiVersion: 'v1', kind: 'A', metadata: { name: 'a' } } },
    ['spec.x'],
  ],
  ['an own key __proto__', at(string), JSON.parse('{"__proto__":{"a":1},"spec":"x"}'), { spec: 'x' }, ['__proto__']],
  ['names of Object.prototype', at({ type: 'object' }), { spec: { toString: 1 } }, { spec: {} }, ['spec.toString']],
] as [string, StructuralSchema, unknown, unknown, string[]][]) {
  test(`prunes: ${name}`, () => assert.deepEqual(pruneUnknown(schema, value, ''), { value: want, pruned }))
}

for (const [name, spec, value, want] of [
  ['a missing field', { type: 'object', properties: { a: { type: 'integer', default: 3 } } }, { spec: {} }, { spec: { a: 3 } }],
  ['no defaults within a missing object', { type: 'object', properties: { a: { type: 'integer', default: 3 } } }, {}, {}],
  [
    'defaults within a default',
    { type: 'object', default: {}, properties: { a: { type: 'integer', default: 3 } } },
    {},
    { spec: { a: 3 } },
  ],
  ['null becomes the default', { type: 'string', default: 'x' }, { spec: null }, { spec: 'x' }],
  ['null is removed where it is not allowed', string, { spec: null }, {}],
  ['null is kept where it is allowed', { type: 'string', nullable: true, default: 'x' }, { spec: null }, { spec: null }],
  [
    'in lists',
    { type: 'array', items: { type: 'object', properties: { p: { type: 'string', default: 'TCP' } } } },
    { spec: [{}, { p: 'UDP' }] },
    { spec: [{ p: 'TCP' }, { p: 'UDP' }] },
  ],
  [
    'in maps',
    { type: 'object', additionalProperties: { type: 'object', properties: { p: { type: 'string', default: 'a' } } } },
    { spec: { k: {} } },
    { spec: { k: { p: 'a' } } },
  ],
] as [string, StructuralSchema, unknown, unknown][]) {
  test(`adds defaults: ${name}`, () => assert.deepEqual(applyDefaults(at(spec), value), want))
}

test('defaults are copied: no two objects share one', () => {
  const schema = at({ type: 'object', default: { list: [] }, 'x-kubernetes-preserve-unknown-fields': true })
  const [a, b] = [applyDefaults(schema, {}), applyDefaults(schema, {})] as { spec: { list: unknown[] } }[]
  assert.notEqual(a!.spec.list, b!.spec.list)
})

const leaf = fc.constantFrom<StructuralSchema>(
  string,
  { type: 'integer', default: 7 },
  { type: 'string', nullable: true },
  { type: 'boolean', default: false },
)
const { schema: anySchema } = fc.letrec<{ schema: StructuralSchema }>(tie => ({
  schema: fc.oneof(
    { maxDepth: 3 },
    leaf,
    fc.record({ type: fc.constant('object' as const), properties: fc.dictionary(fc.constantFrom('a', 'b', 'c'), tie('schema')) }),
    fc.record({ type: fc.constant('object' as const), additionalProperties: tie('schema') }),
    fc.record({ type: fc.constant('object' as const), 'x-kubernetes-preserve-unknown-fields': fc.constant(true) }),
    fc.record({ type: fc.constant('array' as const), items: tie('schema') }),
  ),
}))
const { value: anyValue } = fc.letrec(tie => ({
  value: fc.oneof(
    { maxDepth: 4 },
    fc.constantFrom(null, 1, 'x', true),
    fc.array(tie('value'), { maxLength: 3 }),
    fc.dictionary(fc.constantFrom('a', 'b', 'c', 'd', '__proto__'), tie('value')),
  ),
}))

test('the values of a list are looked up in an enum, not compared with each of its values', () => {
  let reads = 0
  const allowed = new Proxy(
    Array.from({ length: 1_000 }, (_, i) => `v${i}`),
    {
      get: (target, key) => {
        reads++
        return Reflect.get(target, key)
      },
    },
  )
  const list = at({ type: 'array', items: { type: 'string', enum: allowed } })
  assert.deepEqual(validateSchema(list, { spec: Array(1_000).fill('v999') }, ''), [])
  assert.ok(reads < 5_000, `${reads} values of the enum were read`)
  const [cause] = validateSchema(list, { spec: ['x'] }, '')
  assert.match(cause!.message, /^Unsupported value: "x": supported values: "v0", .*"v499", and 500 more$/)
})

test('an object that would be compared with too many alternatives is rejected', () => {
  const anyOf = Array.from({ length: 200 }, (_, i) => ({ required: [`f${i}`] }))
  const list = at({ type: 'array', items: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true, anyOf } })
  const values = (count: number) => ({ spec: Array(count).fill({ f199: 1 }) })
  assert.deepEqual(validateSchema(list, values(400), ''), [])
  const [cause, ...others] = validateSchema(list, values(600), '')
  assert.match(cause!.message, /its schema has too many alternatives for 500000 checks/)
  assert.deepEqual(others, [])
  assert.equal(validateSchema(list, values(600), '', { oldValue: { spec: [] } }).length, 1)
})

test('defaults that would add more fields than an object may have are rejected', () => {
  const added = Object.fromEntries(Array.from({ length: 99 }, (_, i) => [`f${i}`, i]))
  const item: StructuralSchema = { type: 'object', properties: { d: { type: 'object', default: added } } }
  const map: StructuralSchema = { type: 'object', additionalProperties: item }
  const objects = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, i) => [`k${i}`, {}]))
  assert.equal(Object.keys(applyDefaults(map, objects(1_000)) as object).length, 1_000)
  assert.throws(() => applyDefaults(map, objects(1_001)), { code: 413 })
})

test('pruning and defaulting are idempotent, return the same value if nothing changes, and never change their argument', () => {
  fc.assert(
    fc.property(anySchema, anyValue, (schema, value) => {
      const before = JSON.stringify(value)
      const first = pruneUnknown(schema, value, 'spec')
      const again = pruneUnknown(schema, first.value, 'spec')
      assert.equal(again.value, first.value)
      assert.deepEqual(again.pruned, [])
      assert.equal(first.pruned.length === 0, first.value === value)
      const defaulted = applyDefaults(schema, value)
      assert.equal(applyDefaults(schema, defaulted), defaulted)
      assert.equal(JSON.stringify(value), before)
    }),
  )
})

for (const [name, schema, want] of [
  ['a valid schema', at({ type: 'object', properties: { a: string }, anyOf: [{ required: ['a'] }] }), []],
  [
    'no type',
    { properties: { a: {} } },
    [
      's.type: Required value: must not be empty at the root',
      's.properties[a].type: Required value: must not be empty for specified object fields',
    ],
  ],
  ['a root that is not an object', { type: 'string' }, ['s.type: Invalid value: "string": must be object at the root']],
  ['array without items', at({ type: 'array' }), ['s.properties[spec].items: Required value: must be specified']],
  [
    'properties together with additionalProperties',
    at({ type: 'object', properties: {}, additionalProperties: string }),
    ['s.properties[spec].additionalProperties: Forbidden: additionalProperties and properties are mutual exclusive'],
  ],
  [
    'a type within anyOf',
    at({ type: 'string', anyOf: [{ type: 'string' }] }),
    ['s.properties[spec].anyOf[0].type: Forbidden: must be empty to be structural'],
  ],
  ['the long form of int-or-string', at({ 'x-kubernetes-int-or-string': true, anyOf: [{ type: 'integer' }, { type: 'string' }] }), []],
  [
    'a map list without keys',
    at({ type: 'array', 'x-kubernetes-list-type': 'map', items: at(string) }),
    ['s.properties[spec].x-kubernetes-list-map-keys: Required value: must not be empty if x-kubernetes-list-type is map'],
  ],
  [
    'a default of the wrong type',
    at({ type: 'string', default: 1 }),
    ['s.properties[spec].default: Invalid value: "integer":  in body must be of type string: "integer"'],
  ],
  [
    'an invalid pattern',
    at({ type: 'string', pattern: '(' }),
    [
      's.properties[spec].pattern: Invalid value: "(": must be a valid regular expression, but isn\'t: error parsing regexp: missing closing ): `(`',
    ],
  ],
  ['a reference', at({ type: 'object', $ref: '#/x' } as StructuralSchema), ['s.properties[spec].$ref: Forbidden: $ref is not supported']],
] as [string, unknown, string[]][]) {
  test(`checks a structural schema: ${name}`, () => {
    assert.deepEqual(
      structuralErrors(schema, 's').map(({ field, message }) => `${field}: ${message}`),
      want,
    )
  })
}
