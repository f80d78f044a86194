/** Which keys a member of a ring reconciles when objects are deleted, created again or not created yet. */
import { deepEqual, equal } from 'node:assert/strict'
import { after, afterEach, before, test } from 'node:test'
import { configMapResource } from '../src/kubernetes/client/index.ts'
import {
  applyOwned,
  bucketLabel,
  bucketOf,
  type Controller,
  controller,
  createOrPatch,
  Manager,
  type ReconcileRequest,
  type Result,
  type ShardOptions,
  silentLog,
} from '../src/kubernetes/controller/index.ts'
import { controllerReference, defineResource, type ObjectOf, Type } from '../src/kubernetes/object/index.ts'
import { startTestServer, type TestServer } from '../src/kubernetes/testing/index.ts'
import { eventually } from './support/eventually.ts'

const boatResource = defineResource({
  group: 'keys.example',
  version: 'v1',
  kind: 'Boat',
  plural: 'boats',
  scope: 'Namespaced',
  description: 'A boat.',
  spec: Type.Object({ seats: Type.Optional(Type.Integer()) }),
  status: Type.Object({}),
})
type Boat = ObjectOf<typeof boatResource>
type Request = ReconcileRequest<Boat>

const namespace = 'default'
const key = `${namespace}/boat`
let api: TestServer
let rings = 0
const managers = new Set<Manager>()

before(async () => {
  api = await startTestServer({ kinds: [boatResource] })
})
after(() => api.close())
afterEach(async () => {
  await Promise.all([...managers].map(manager => manager.stop({ graceMs: 1_000 })))
  managers.clear()
  await api.client.request({ method: 'DELETE', path: `/apis/keys.example/v1/namespaces/${namespace}/boats` })
})

const newRing = (slots: number): ShardOptions => ({
  ...{ name: `keys${rings++}`, namespace, slots },
  ...{ leaseDurationMs: 5_000, renewDeadlineMs: 3_500, retryPeriodMs: 300 },
})

type Member = { manager: Manager; boats: Controller; requests: Request[] }

async function start(shards: ShardOptions, reconcile: (request: Request) => Promise<Result> = async () => undefined): Promise<Member> {
  const manager = new Manager({ client: api.client, log: silentLog, shards })
  const requests: Request[] = []
  const boats = controller({
    name: 'boats',
    for: boatResource,
    owns: [configMapResource],
    async reconcile(request) {
      requests.push(request as Request)
      void request.object
      return await reconcile(request as Request)
    },
  })
  manager.add(boats)
  managers.add(manager)
  await manager.start()
  return { manager, boats, requests }
}

async function startTwo(reconcile?: (request: Request) => Promise<Result>): Promise<Member[]> {
  const ring = newRing(2)
  const members = [await start(ring, reconcile), await start(ring, reconcile)]
  await eventually(() => members.every(({ manager }) => manager.shards?.counts().active === 512), 'two halves')
  return members
}

const createBoat = () => api.client.resource(boatResource).create({ metadata: { name: 'boat', namespace }, spec: {} })
const deleteBoat = () => api.client.resource(boatResource).delete('boat', { namespace })
const isOwner = ({ manager }: Member, { metadata }: { metadata: { uid: string } }) => manager.shards?.owns(metadata.uid) === true
const isIdle = ({ boats: { depth } }: Member) => depth.waiting + depth.running + depth.delayed === 0

/** Creates it again and again under the same name until the member owns it. */
async function createBoatOf(member: Member): Promise<Boat> {
  for (;;) {
    const boat = await createBoat()
    if (isOwner(member, boat)) return boat
    await deleteBoat()
  }
}

test('an object that was deleted and created again in the bucket of another member is not reconciled as deleted', async () => {
  const gate = Promise.withResolvers<void>()
  const members = await startTwo(async ({ object }) => {
    if (object?.spec.seats === 1) await gate.promise
  })
  const old = await createBoat()
  const [owner, other] = (isOwner(members[0]!, old) ? members : [...members].reverse()) as [Member, Member]
  const boats = api.client.resource(boatResource)
  const labels = { [bucketLabel]: String(bucketOf(old.metadata.uid)) }
  await applyOwned(api.client.resource(configMapResource), old, { metadata: { name: 'boat', labels } })
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
  const member = await start(newRing(1), async ({ object }) => {
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
  await applyOwned(api.client.resource(configMapResource), boat, { metadata: { name: 'boat', labels, finalizers: ['keys.example/keep'] } })
  await eventually(() => maps.has(key) && isIdle(member), 'the child')
  await deleteBoat()
  await eventually(() => deletions.length === 2, 'the second attempt')
  await api.client.resource(configMapResource).patch('boat', { metadata: { finalizers: null } }, { type: 'merge', namespace })
  await eventually(() => !maps.has(key), 'the deletion of the child')
  gate.resolve()
  await eventually(() => deletions.length === 3, 'a reconcile for the child')
})

test('createOrPatch of an owned object adds its bucket and keeps its other labels', async () => {
  const maps = api.client.resource(configMapResource)
  const boat = await createBoat()
  const ownerReferences = [controllerReference(boat)]
  await maps.create({ metadata: { name: 'boat', namespace, labels: { color: 'red' }, ownerReferences }, data: { a: '1' } })
  await start(newRing(1), async ({ client, object }) => {
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
  const maps = api.client.resource(configMapResource)
  const boat = await createBoat()
  const bucket = bucketOf(boat.metadata.uid)
  const labels = { [bucketLabel]: String((bucket + 1) % 1_024) }
  await maps.create({ metadata: { name: 'orphan', namespace, labels } })
  const other = await api.client.resource(boatResource).create({ metadata: { name: 'other', namespace }, spec: {} })
  const otherLabels = { [bucketLabel]: String(bucketOf(other.metadata.uid)) }
  await maps.create({ metadata: { name: 'of-other', namespace, labels: otherLabels, ownerReferences: [controllerReference(other)] } })
  await start(newRing(1), async ({ client, object }) => {
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
