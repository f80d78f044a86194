import { deepEqual, equal, throws } from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { KubeObject } from '../object/index.ts'
import { ObjectStore } from './object-store.ts'

type Body = { data?: Record<string, string> }
const objectOf = (name: string, version: number): KubeObject<Body> => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name, uid: `u${name}`, resourceVersion: String(version), creationTimestamp: '' },
  data: { v: `ü${version}` },
})

test('a store with few hot objects behaves like a Map under any sequence of operations', () => {
  const names = ['a', 'b', 'c', 'd', 'e', 'f']
  const step = fc.record({ act: fc.constantFrom('set', 'get', 'delete', 'list'), name: fc.constantFrom(...names) })
  fc.assert(
    fc.property(fc.array(step, { maxLength: 80 }), fc.integer({ min: 1, max: 4 }), (steps, hotObjects) => {
      const store = new ObjectStore<Body>(hotObjects)
      const oracle = new Map<string, KubeObject<Body>>()
      for (const [version, { act, name }] of steps.entries()) {
        if (act === 'set') {
          store.set(name, objectOf(name, version))
          oracle.set(name, objectOf(name, version))
        } else if (act === 'delete') {
          store.delete(name)
          oracle.delete(name)
        } else if (act === 'get') {
          deepEqual(store.get(name), oracle.get(name))
          equal(store.stored(name)?.resourceVersion, oracle.get(name)?.metadata.resourceVersion)
        } else {
          deepEqual(new Map(store.objects()), oracle)
          deepEqual(store.values(), [...oracle.values()])
        }
        equal(store.size, oracle.size)
      }
    }),
    { numRuns: 500 },
  )
})

test('a hot object keeps its identity; a cold one is unpacked on each read', () => {
  const store = new ObjectStore<Body>(2)
  for (const name of ['a', 'b', 'c']) store.set(name, objectOf(name, 1))
  const b = store.get('b')
  store.get('a')
  equal(store.get('b'), b)
  throws(() => new ObjectStore(0), /hotObjects must be a number >= 1, got 0/)
})
