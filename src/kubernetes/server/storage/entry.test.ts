import { equal } from 'node:assert/strict'
import { test } from 'node:test'
import { type KubeObject, shardHashHigh } from '../../object/index.ts'
import { entryOf, stringifyAsciiJson, uidHashOf } from './entry.ts'

const object = (uid: string): KubeObject => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name: 'a', namespace: 'b', uid, resourceVersion: '1', creationTimestamp: '' },
})

test('the hash of a UID is stored with the object and kept by its later versions, not by an object of the same name', () => {
  const make = (uid: string, before?: ReturnType<typeof entryOf>) =>
    entryOf(1, object(uid), 1, stringifyAsciiJson(object(uid)), undefined, before)
  const first = make('5a2c4a3e-0000-4000-8000-000000000001')
  equal(first.uidHash, undefined)
  equal(uidHashOf(first), shardHashHigh(first.uid))
  equal(first.uidHash, shardHashHigh(first.uid) | 0)
  equal(make(first.uid, first).uidHash, first.uidHash)
  equal(make('5a2c4a3e-0000-4000-8000-000000000002', first).uidHash, undefined)
})
