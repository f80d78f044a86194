import { deepEqual, equal } from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { cutManagedFields } from './cut-managed-fields.ts'

const entry = { manager: 'm"]}\\', fieldsV1: { 'f:spec': { '.': {}, 'k:{"name":"a[\\"]"}': {} } } }

/** What it must come to, by parsing. */
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
  { name: 'not there', object: { metadata: { name: 'managedFields' }, spec: { a: '"managedFields":[' } } },
  { name: 'elsewhere only', object: { spec: { managedFields: [1] }, metadata: { labels: { managedFields: 'x' } } } },
  {
    name: 'elsewhere too',
    object: { spec: { managedFields: [1] }, metadata: { managedFields: [entry] }, status: { metadata: { managedFields: [2] } } },
  },
]) {
  test(`managedFields ${name}: only those of the object's metadata go`, () => {
    for (const text of [JSON.stringify(object), JSON.stringify({ type: 'MODIFIED', object })]) {
      deepEqual(JSON.parse(cutManagedFields(text)), without(text))
    }
  })
}

test('any JSON stays what it is but for that, and what is no JSON comes back as it came', () => {
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
        deepEqual(JSON.parse(cutManagedFields(text)), without(text))
      }
      cutManagedFields(JSON.stringify(object).slice(0, length))
    }),
    { numRuns: 1_000 },
  )
  for (const text of ['', '{', '{"metadata":{"managedFields":[', '[]', '{ "metadata": {"managedFields":[]} }', 'x"managedFields":[']) {
    equal(cutManagedFields(text), text)
  }
})
