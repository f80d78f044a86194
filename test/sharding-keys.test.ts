/** Which keys a member of a ring reconciles when objects are deleted, created again or not created yet. */
import { deepEqual, equal } from 'node:assert/strict'
import { test } from 'node:test'
import { configMapResource } from '../src/kubernetes/client/index.ts'
import { applyOwned, bucketLabel, bucketOf, createOrPatch } from '../src/kubernetes/controller/index.ts'
import { controllerReference } from '../src/kubernetes/object/index.ts'
import { eventually } from './support/eventually.ts'
import { type Boat, boatResource, type Member, namespace, ownerFirst, owns, ShardedBoats } from './support/sharded-boats.ts'

const fleet = new ShardedBoats({ durations: { leaseDurationMs: 5_000, renewDeadlineMs: 3_500, retryPeriodMs: 300 } })
const key = `${namespace}/boat`

const createBoat = () => fleet.create('boat')
const deleteBoat = () => fleet.api.client.resource(boatResource).delete('boat', { namespace })
const isIdle = ({ boats: { depth } }: Member) => depth.waiting + depth.running + depth.delayed === 0

/** Creates it again and again under the same name until the member owns it. */
async function createBoatOf(member: Member): Promise<Boat> {
  for (;;) {
    const boat = await createBoat()
    if (owns(member, boat)) return boat
    await deleteBoat()
  }
}

test('an object that was deleted and created again in the bucket of another member is not reconciled as deleted', async () => {
  const gate = Promise.withResolvers<void>()
  const members = await fleet.startTwo(async ({ object }) => {
    if (object?.spec.seats === 1) await gate.promise
  })
  const old = await createBoat()
  const [owner, other] = ownerFirst(members, old)
  const boats = fleet.api.client.resource(boatResource)
  const labels = { [bucketLabel]: String(bucketOf(old.metadata.uid)) }
  await applyOwned(fleet.api.client.resource(configMapResource), old, { metadata: { name: 'boat', labels } })
  await boats.patch('boat', { spec: { seats: 1 } }, { type: 'merge', namespace })
  await eventually(() => owner.requests.some(({ object }) => object?.spec.seats === 1), 'the reconcile that waits')
  await deleteBoat()
  const boat = await createBoatOf(other)
  await eventually(() => other.requests.some(({ object }) => object?.metadata.uid === boat.metadata.uid), 'the new owner')
  const cache = owner.manager.informer(boatResource, { sharded: 'root' })
  await eventually(() => !cache.has(key), 'the deletion at the old owner')
  owner.requests.length = 0
  // The last reconcile of the old object is due, and then events of its children.
  gate.resolve()
  await eventually(() => isIdle(owner), 'the old owner')
  const maps = owner.manager.informer(configMapResource, { sharded: 'owned' })
  await eventually(() => !maps.has(key), 'the garbage collection of the child')
  await eventually(() => isIdle(owner), 'the old owner')
  deepEqual(
    owner.requests.map(request => request.object?.metadata.uid),
    [],
  )
  await deleteBoat()
  await eventually(() => other.requests.some(({ object }) => object === undefined), 'a reconcile of the deletion')
  equal(owner.requests.length, 0)
})

test('a deleted object is reconciled again when its reconcile asks for it, and when its children change meanwhile', async () => {
  const deletions: number[] = []
  const gate = Promise.withResolvers<void>()
  const member = await fleet.start(fleet.newRing(1), async ({ object }) => {
    if (object) return
    deletions.push(performance.now())
    if (deletions.length === 1) return { requeueAfterMs: 30 }
    if (deletions.length === 2) await gate.promise
  })
  await eventually(() => member.manager.shards?.counts().active === 1_024, 'all buckets')
  const boat = await createBoat()
  const maps = member.manager.informer(configMapResource, { sharded: 'owned' })
  const labels = { [bucketLabel]: String(bucketOf(boat.metadata.uid)) }
  // Its own finalizer keeps the child after its owner is gone.
  await applyOwned(fleet.api.client.resource(configMapResource), boat, {
    metadata: { name: 'boat', labels, finalizers: ['keys.example/keep'] },
  })
  await eventually(() => maps.has(key) && isIdle(member), 'the child')
  await deleteBoat()
  await eventually(() => deletions.length === 2, 'the second attempt')
  await fleet.api.client.resource(configMapResource).patch('boat', { metadata: { finalizers: null } }, { type: 'merge', namespace })
  await eventually(() => !maps.has(key), 'the deletion of the child')
  gate.resolve()
  await eventually(() => deletions.length === 3, 'a reconcile for the child')
})

test('createOrPatch of an owned object adds its bucket and keeps its other labels', async () => {
  const maps = fleet.api.client.resource(configMapResource)
  const boat = await createBoat()
  const ownerReferences = [controllerReference(boat)]
  await maps.create({ metadata: { name: 'boat', namespace, labels: { color: 'red' }, ownerReferences }, data: { a: '1' } })
  await fleet.start(fleet.newRing(1), async ({ client, object }) => {
    if (!object) return
    await createOrPatch(client.resource(configMapResource), { name: 'boat', namespace }, () => ({
      metadata: { ownerReferences },
      data: { a: '2' },
    }))
  })
  const { metadata } = await eventually(
    () => maps.get('boat', { namespace }),
    ({ data }) => data?.a === '2',
  )
  deepEqual(metadata.labels, { color: 'red', [bucketLabel]: String(bucketOf(boat.metadata.uid)) })
})

test('an orphan that a recreated root adopts gets the bucket of the new root, and what another root controls keeps its own', async () => {
  const maps = fleet.api.client.resource(configMapResource)
  const boat = await createBoat()
  const bucket = bucketOf(boat.metadata.uid)
  const labels = { [bucketLabel]: String((bucket + 1) % 1_024) }
  await maps.create({ metadata: { name: 'orphan', namespace, labels } })
  const other = await fleet.create('other')
  const otherLabels = { [bucketLabel]: String(bucketOf(other.metadata.uid)) }
  await maps.create({ metadata: { name: 'of-other', namespace, labels: otherLabels, ownerReferences: [controllerReference(other)] } })
  await fleet.start(fleet.newRing(1), async ({ client, object }) => {
    if (object?.metadata.name !== 'boat') return
    const handle = client.resource(configMapResource)
    await createOrPatch(handle, { name: 'of-other', namespace }, current => ({ ...current, metadata: current!.metadata, data: { a: '1' } }))
    await createOrPatch(handle, { name: 'orphan', namespace }, current => ({
      metadata: { labels: { ...current?.metadata.labels, color: 'red' }, ownerReferences: [controllerReference(object)] },
    }))
  })
  const { metadata } = await eventually(
    () => maps.get('orphan', { namespace }),
    ({ metadata }) => metadata.labels?.color === 'red',
  )
  equal(metadata.labels?.[bucketLabel], String(bucket))
  deepEqual((await maps.get('of-other', { namespace })).metadata.labels, otherLabels)
})
