import { deepEqual, equal } from 'node:assert/strict'
import { test } from 'node:test'
import { type Client, configMapResource } from '../../client/index.ts'
import type { KubeObject } from '../../object/index.ts'
import type { Informer } from '../informer.ts'
import { bucketLabel, bucketOf, bucketOfObject } from './bucket.ts'
import { ShardedKeys } from './sharded-keys.ts'
import type { Shards } from './shards.ts'
import type { Tenure } from './tenures.ts'

const key = 'a/boat'
const uid = 'b7e1f0c2-1111-4222-8333-000000000001'

/** Keys of a member with all buckets. Its cache has `cached`, and may have the objects of all buckets but `lost`. */
function keysOf(by: 'root' | 'owned', cached: KubeObject<unknown>[] = []) {
  const objects = new Map(cached.map(object => [`${object.metadata.namespace}/${object.metadata.name}`, object]))
  const lost = new Set<number>()
  const informer = {
    resource: configMapResource,
    get: (name: string) => objects.get(name),
    uidOf: (name: string) => objects.get(name)?.metadata.uid,
    isInShard: (object: KubeObject<unknown>) => !lost.has(bucketOfObject(by, object) ?? -1),
  } as unknown as Informer<unknown>
  const keys = new ShardedKeys({ tenureOf } as unknown as Shards, by, new Map([[undefined, { informer, client: {} as Client }]]))
  return { keys, objects, lost }
}

const tenureOf = (bucket: number): Tenure => ({
  ...{ bucket, fence: 1, ringVersion: 1, signal: new AbortController().signal },
  isHeld: () => true,
  mayWrite: () => true,
})

const childOf = (owner: string, bucket: number, controller = true): KubeObject<unknown> => ({
  ...{ apiVersion: 'v1', kind: 'ConfigMap' },
  metadata: {
    ...{ name: 'child', namespace: 'a', uid: 'child', resourceVersion: '1', creationTimestamp: '' },
    labels: { [bucketLabel]: String(bucket) },
    ownerReferences: [{ apiVersion: 'v1', kind: 'Boat', name: 'boat', uid: owner, controller }],
  },
})
const other = (bucketOf(uid) + 1) % 1_024

test('a child of a root that is not in the cache makes its key due only if its label is the bucket of the UID of that root', () => {
  const admits = (child: KubeObject<unknown>) => keysOf('root').keys.admits(key, child, false)
  deepEqual(
    [
      childOf(uid, bucketOf(uid)),
      childOf(uid, other),
      childOf(uid, bucketOf(uid), false),
      { ...childOf(uid, 1), metadata: { ...childOf(uid, 1).metadata, labels: {} } },
    ].map(admits),
    [true, false, false, false],
  )
})

test('a child of a root that is in the cache makes its key due in the bucket of the root, whatever its label', () => {
  const root = { ...childOf('none', 0), metadata: { ...childOf('none', 0).metadata, name: 'boat', uid } }
  const { keys } = keysOf('root', [root])
  equal(keys.admits(key, childOf(uid, other), false), true)
  equal(keys.tenureOf(key)?.bucket, bucketOf(uid))
})

test('of a kind that is owned itself, the label decides', () => {
  const { keys } = keysOf('owned')
  equal(keys.admits(key, childOf(uid, other), false), true)
  equal(keys.tenureOf(key)?.bucket, other)
})

test('while an owned object is reconciled, its member may write until the bucket label changes, or the object is replaced or removed', () => {
  const object = childOf(uid, 5)
  const { metadata } = object
  const { keys, objects, lost } = keysOf('owned', [object])
  const tenure = keys.whileLabeled('a/child', keys.tenureOf('a/child')!)
  const rights = () => [tenure.isHeld(), tenure.mayWrite()]
  deepEqual([tenure.bucket, ...rights()], [5, true, true])
  for (const changed of [childOf(uid, 6), { ...object, metadata: { ...metadata, uid: 'another' } }]) {
    objects.set('a/child', changed)
    deepEqual(rights(), [false, false])
  }
  objects.set('a/child', { ...object, metadata: { ...metadata, resourceVersion: '2' } })
  deepEqual(rights(), [true, true])
  objects.delete('a/child')
  deepEqual(rights(), [false, false])
  // Its cache gave up the bucket, which moves to another member when this reconcile has ended.
  lost.add(5)
  deepEqual(rights(), [true, true])
})
