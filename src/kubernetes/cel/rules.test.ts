import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { StructuralSchema } from '../object/index.ts'
import { hasRules, structuralErrors, validateRules, validateSchema } from '../schema/index.ts'

// Messages of rules, and the conditions for transition rules, are recorded from kube-apiserver in
// test/conformance/cases/crds/rules.txt and rule-transitions.txt.

const ruled = (rule: string, schema: StructuralSchema): StructuralSchema => ({ ...schema, 'x-kubernetes-validations': [{ rule }] })
const at = (spec: StructuralSchema): StructuralSchema => ({ type: 'object', properties: { spec } })

test('returns no causes for a schema without rules', () => {
  const schema = at({ type: 'string' })
  assert.equal(hasRules(schema), false)
  assert.deepEqual(validateRules(schema, { spec: 'x' }, undefined), { causes: [], warnings: [] })
})

test('an object that exceeds the cost limit is rejected, including the rules that were not evaluated', () => {
  const items: StructuralSchema = { type: 'array', items: { type: 'integer' } }
  const schema = at({
    type: 'object',
    properties: { a: ruled('self.all(x, self.all(y, x <= y || x > y))', items), b: ruled('self.size() == 0', items) },
  })
  const spec = { a: Array.from({ length: 5_000 }, (_, index) => index), b: [1] }
  assert.deepEqual(
    validateRules(schema, { spec }, undefined).causes.map(({ field, message }) => `${field}: ${message}`),
    [
      `spec.a: Invalid value: "array": 'operation cancelled: actual cost limit exceeded': no further validation rules will be run due to call cost exceeds limit for rule: self.all(x, self.all(y, x <= y || x > y))`,
    ],
  )
})

test('rejects an object whose strings are too long for its patterns', () => {
  const schema = at({ type: 'string', pattern: '^[ab]*a[ab]{20}(c|d)?$' })
  const causesOf = (spec: string) => validateSchema(schema, { spec }, '').map(({ message }) => message)
  assert.deepEqual(causesOf(`${'ab'.repeat(15)}a`), [])
  assert.match(causesOf('ab'.repeat(100_000)).join(), /too long for its patterns/)
})

test('evaluates a pattern that would block a backtracking engine', () => {
  const schema = at({ type: 'string', pattern: '^(a+)+$' })
  assert.equal(validateSchema(schema, { spec: `${'a'.repeat(50_000)}b` }, '').length, 1)
})

const leaf = fc.constantFrom<StructuralSchema>(
  { type: 'string' },
  { type: 'string', format: 'date-time' },
  { type: 'string', format: 'byte', nullable: true },
  { type: 'integer' },
  { type: 'number' },
  { 'x-kubernetes-int-or-string': true },
  { 'x-kubernetes-preserve-unknown-fields': true },
)
const { schema: anySchema } = fc.letrec<{ schema: StructuralSchema }>(tie => ({
  schema: fc
    .tuple(
      fc.oneof(
        { maxDepth: 3 },
        leaf,
        fc.record({
          type: fc.constant('object' as const),
          properties: fc.dictionary(fc.constantFrom('a', 'b', 'if', 'x-y'), tie('schema')),
        }),
        fc.record({ type: fc.constant('object' as const), additionalProperties: tie('schema') }),
        fc.record({ type: fc.constant('array' as const), items: tie('schema') }),
        tie('schema').map(
          (a): StructuralSchema => ({
            type: 'array',
            items: { type: 'object', required: ['k'], properties: { k: { type: 'string' }, a } },
            'x-kubernetes-list-type': 'map',
            'x-kubernetes-list-map-keys': ['k'],
          }),
        ),
      ),
      fc.constantFrom(
        undefined,
        'self == oldSelf',
        'self == self',
        'has(self.a)',
        'self.a == self.a',
        'self.all(x, x == x)',
        'size(self) < 2',
        'self.__if__ != self.x__dash__y',
        "string(self) != 'x'",
        'self + self == self',
        '[self, self].size() == 2',
      ),
    )
    .map(([schema, rule]) => (rule === undefined ? schema : ruled(rule, schema))),
}))
const { value: anyValue } = fc.letrec(tie => ({
  value: fc.oneof(
    { maxDepth: 4 },
    fc.constantFrom(null, 1, 1.5, 'x', '2026-01-01T00:00:00Z', true),
    fc.array(tie('value'), { maxLength: 3 }),
    fc.dictionary(fc.constantFrom('a', 'b', 'k', 'if', 'x-y', '__proto__'), tie('value'), { maxKeys: 3 }),
  ),
}))

test('any rules on any objects give causes and never throw', () => {
  fc.assert(
    fc.property(anySchema, anyValue, anyValue, (spec, value, old) => {
      const schema = at(spec)
      for (const { field } of structuralErrors(schema)) assert.equal(typeof field, 'string')
      for (const [now, before] of [
        [value, undefined],
        [value, old],
        [value, value],
      ]) {
        const { causes, warnings } = validateRules(schema, { spec: now }, before === undefined ? undefined : { spec: before })
        for (const { field, message, reason } of causes) assert.ok(field && message && reason)
        for (const warning of warnings) assert.equal(typeof warning, 'string')
      }
    }),
    { numRuns: Number(process.env.OARLOCK_TEST_RUNS ?? 1_000) },
  )
})

test('rules on parts that an object shares with the stored one have the results of rules on copies', () => {
  fc.assert(
    fc.property(anySchema, anyValue, (spec, value) => {
      const schema = at({ type: 'object', properties: { spec }, 'x-kubernetes-validations': [{ rule: 'self == oldSelf' }] })
      const shared = validateRules(schema, { spec: { spec: value } }, { spec: { spec: value } })
      assert.deepEqual(validateRules(schema, { spec: { spec: value } }, { spec: { spec: structuredClone(value) } }), shared)
    }),
    { numRuns: Number(process.env.OARLOCK_TEST_RUNS ?? 1_000) },
  )
})

test('a constant list or map of a rule is the same for each object', () => {
  const schema = at(ruled(`self in ['a', 'b'] && {'a': 1, 'b': 2}[self] > 0`, { type: 'string' }))
  for (const [spec, isValid] of [
    ['a', true],
    ['c', false],
    ['b', true],
    ['a', true],
  ] as const)
    assert.equal(validateRules(schema, { spec }, undefined).causes.length === 0, isValid)
})
