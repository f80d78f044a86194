import { deepEqual, equal, ok } from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { ObjectPacker } from './object-packer.ts'

/** Few names and values, so that objects resemble each other, including every JSON type. */
const name = fc.constantFrom('name', 'spec', 'labels', 'a/b', '', '__proto__', 'constructor')
const text = fc.oneof(fc.constantFrom('', 'pending', 'default', 'nul\0inside', 'ü€😀', '\x01', 'x'.repeat(80)), fc.string())
const { tree } = fc.letrec(tie => ({
  tree: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    fc.oneof(text, fc.double({ noNaN: true, noDefaultInfinity: true }), fc.integer(), fc.boolean(), fc.constant(null)),
    fc.array(tie('tree'), { maxLength: 4 }),
    fc.array(fc.tuple(name, tie('tree')), { maxLength: 5 }).map(entries => fromJson(entries)),
  ),
}))

/** Like JSON.parse: `__proto__` is an ordinary field. */
function fromJson(entries: [string, unknown][]): unknown {
  return JSON.parse(`{${entries.map(([key, value]) => `${JSON.stringify(key)}:${JSON.stringify(value)}`).join(',')}}`)
}

test('an unpacked object equals its JSON round trip, including field order, whatever else was packed', () => {
  fc.assert(
    fc.property(fc.array(fc.array(fc.tuple(name, tree), { maxLength: 5 }).map(fromJson), { maxLength: 30 }), objects => {
      const packer = new ObjectPacker()
      const packed = objects.map(object => packer.pack(object as object))
      for (const [index, text] of packed.entries()) {
        equal(JSON.stringify(packer.unpack(text)), JSON.stringify(objects[index]))
      }
    }),
    { numRuns: 1_000 },
  )
})

test('values that are not JSON are packed as JSON.stringify serializes them', () => {
  const packer = new ObjectPacker()
  const odd = { at: new Date(0), left: undefined, list: [undefined, Number.NaN, 1], map: new Map([[1, 2]]), zero: -0 }
  deepEqual(packer.unpack(packer.pack(odd)), JSON.parse(JSON.stringify(odd)))
  const bare = Object.assign(Object.create(null), { x: 1 })
  deepEqual(packer.unpack(packer.pack({ bare })), { bare: { x: 1 } })
})

test('objects of one kind take a fraction of their JSON', () => {
  const packer = new ObjectPacker()
  const objectOf = (index: number) => ({
    apiVersion: 'example.com/v1',
    kind: 'Boat',
    metadata: { name: `boat-${index}`, namespace: 'default', uid: `uid-${index}`, labels: { fleet: `fleet-${index % 9}` } },
    spec: { material: ['oak', 'steel'][index % 2], seats: index % 4, crew: [{ name: `sailor-${index}`, rank: 'mate' }] },
  })
  for (let index = 0; index < 1_000; index++) packer.pack(objectOf(index))
  const packed = packer.pack(objectOf(1_000))
  ok(packed.length * 4 < JSON.stringify(objectOf(1_000)).length, `${packed.length} characters`)
  deepEqual(packer.unpack(packed), objectOf(1_000))
})

test('objects that have nothing in common can be packed too, and the dictionary stays small', () => {
  const packer = new ObjectPacker()
  const objectOf = (index: number) => ({ [`field-${index}`]: { [`${index}`]: [`value-${index}`] }, labels: { [`l${index}`]: 'x' } })
  const packed = Array.from({ length: 5_000 }, (_, index) => packer.pack(objectOf(index)))
  for (const index of [0, 31, 32, 4_999]) deepEqual(packer.unpack(packed[index] as string), objectOf(index))
})
