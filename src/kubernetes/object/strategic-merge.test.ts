import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Json, StructuralSchema } from './index.ts'
import { applyStrategicPatch } from './strategic-merge.ts'

const schema: StructuralSchema = {
  type: 'object',
  properties: {
    secrets: { type: 'array', items: { type: 'object' }, 'x-kubernetes-patch-strategy': 'merge', 'x-kubernetes-patch-merge-key': 'name' },
  },
}

for (const { name, live, patch, want } of [
  {
    name: 'maps are merged, and null removes a key',
    live: { data: { a: '1', b: '2' } },
    patch: { data: { a: null, c: '3' } },
    want: { data: { b: '2', c: '3' } },
  },
  { name: 'a list without a merge key is replaced', live: { list: [1, 2] }, patch: { list: [3] }, want: { list: [3] } },
  {
    name: 'a list with a merge key is merged by it',
    live: { secrets: [{ name: 'a', x: 1 }, { name: 'b' }] },
    patch: { secrets: [{ name: 'a', y: 2 }, { name: 'c' }] },
    want: { secrets: [{ name: 'a', x: 1, y: 2 }, { name: 'c' }, { name: 'b' }] },
  },
  {
    name: '$patch: delete removes an item',
    live: { secrets: [{ name: 'a' }, { name: 'b' }] },
    patch: { secrets: [{ name: 'a', $patch: 'delete' }] },
    want: { secrets: [{ name: 'b' }] },
  },
  {
    name: '$patch: replace replaces a map',
    live: { data: { a: '1' } },
    patch: { data: { $patch: 'replace', b: '2' } },
    want: { data: { b: '2' } },
  },
  {
    name: 'values are added to a set of scalars',
    live: { metadata: { finalizers: ['a'] } },
    patch: { metadata: { finalizers: ['b', 'a'] } },
    want: { metadata: { finalizers: ['b', 'a'] } },
  },
  {
    name: '$deleteFromPrimitiveList removes values from a set of scalars',
    live: { metadata: { finalizers: ['a', 'b'] } },
    patch: { metadata: { '$deleteFromPrimitiveList/finalizers': ['a'] } },
    want: { metadata: { finalizers: ['b'] } },
  },
  {
    name: '$setElementOrder sets the order of a list',
    live: { secrets: [{ name: 'a' }, { name: 'b' }] },
    patch: { '$setElementOrder/secrets': [{ name: 'b' }, { name: 'a' }] },
    want: { secrets: [{ name: 'b' }, { name: 'a' }] },
  },
  {
    name: '$retainKeys removes all other keys',
    live: { data: { a: '1', b: '2' } },
    patch: { data: { $retainKeys: ['b'], b: '3' } },
    want: { data: { b: '3' } },
  },
] satisfies { name: string; live: Json; patch: Json; want: Json }[]) {
  test(name, () => assert.deepEqual(applyStrategicPatch(live, patch, schema), want))
}

test('rejects an item without its merge key, and an unknown directive', () => {
  assert.throws(() => applyStrategicPatch({}, { secrets: [{ x: 1 }] }, schema), { reason: 'BadRequest' })
  assert.throws(() => applyStrategicPatch({}, { data: { $patch: 'explode' } }, schema), { reason: 'BadRequest' })
})
