import { deepEqual, equal } from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { stripManagedFields } from './strip-managed-fields.ts'

const entry = { manager: 'm"]}\\', fieldsV1: { 'f:spec': { '.': {}, 'k:{"name":"a[\\"]"}': {} } } }

/** The expected result, by parsing. */
function without(text: string): unknown {
  const value = JSON.parse(text) as { object?: object; type?: string }
  const object = (value.type ? value.object : value) as { metadata?: { managedFields?: unknown } | null }
  if (typeof object?.metadata === 'object' && Array.isArray(object.metadata?.managedFields)) delete object.metadata.managedFields
  return value
}

for (const { name, object } of [
  {
    name: 'in the middle of the metadata',
    object: { apiVersion: 'v1', metadata: { name: 'a', managedFields: [entry], uid: 'u' }, spec: { a: 1 } },
  },
  { name: 'first', object: { metadata: { managedFields: [entry, entry], uid: 'u' } } },
  { name: 'last', object: { kind: 'Boat', metadata: { uid: 'u', managedFields: [] }, status: {} } },
  { name: 'alone', object: { metadata: { managedFields: [entry] } } },
  { name: 'absent', object: { metadata: { name: 'managedFields' }, spec: { a: '"managedFields":[' } } },
  { name: 'elsewhere only', object: { spec: { managedFields: [1] }, metadata: { labels: { managedFields: 'x' } } } },
  {
    name: 'elsewhere too',
    object: { spec: { managedFields: [1] }, metadata: { managedFields: [entry] }, status: { metadata: { managedFields: [2] } } },
  },
]) {
  test(`removes only the managedFields of the object's own metadata: ${name}`, () => {
    for (const text of [JSON.stringify(object), JSON.stringify({ type: 'MODIFIED', object })]) {
      deepEqual(JSON.parse(stripManagedFields(text)), without(text))
    }
  })
}

test('changes nothing else in any JSON, and returns other text unchanged', () => {
  const key = fc.constantFrom('metadata', 'managedFields', 'type', 'object', 'x"y', '\\')
  const { tree } = fc.letrec(tie => ({
    tree: fc.oneof(
      { depthSize: 'small' },
      fc.oneof(fc.string(), fc.constantFrom('"managedFields":[', '\\"', 'ü'), fc.integer(), fc.boolean(), fc.constant(null)),
      fc.array(tie('tree'), { maxLength: 3 }),
      fc.dictionary(key, tie('tree'), { maxKeys: 4 }),
    ),
  }))
  const wrapped = fc.record({ metadata: fc.dictionary(key, tree, { maxKeys: 4 }), spec: tree })
  fc.assert(
    fc.property(wrapped, fc.integer({ min: 0, max: 200 }), (object, length) => {
      for (const text of [JSON.stringify(object), JSON.stringify({ type: 'ADDED', object })]) {
        deepEqual(JSON.parse(stripManagedFields(text)), without(text))
      }
      stripManagedFields(JSON.stringify(object).slice(0, length))
    }),
    { numRuns: 1_000 },
  )
  for (const text of ['', '{', '{"metadata":{"managedFields":[', '[]', '{ "metadata": {"managedFields":[]} }', 'x"managedFields":[']) {
    equal(stripManagedFields(text), text)
  }
})
