import { deepEqual, equal, match, ok, rejects, throws } from 'node:assert/strict'
import { test } from 'node:test'
import { Registry } from 'prom-client'
import { eventually } from '../../../test/support/eventually.ts'
import { eventResource, secretResource } from '../../kubernetes/client/index.ts'
import { type Controller, Manager, silentLog } from '../../kubernetes/controller/index.ts'
import { findCondition, isReason, type KubeObject } from '../../kubernetes/object/index.ts'
import { reconcileRequest, startTestServer, type TestServer } from '../../kubernetes/testing/index.ts'
import { type BucketBody, bucketOptions, bucketResource, FakeCloud } from './fake-cloud.testing.ts'
import { annotations, type ChangeLogEntry, managed, managedFinalizer, UnknownOutcomeError } from './index.ts'
import { withLock } from './managed.ts'
import { ManagedReconciler } from './reconcile-managed.ts'

let api: TestServer
let cloud: FakeCloud
const namespace = 'default'

type Options = ReturnType<typeof bucketOptions>
type Run = AsyncDisposable & { buckets: ReturnType<typeof bucketsOf>; controller: Controller }

/** A server and a controller of Buckets, which run until the end of the scope. */
async function start(change: Partial<Options> = {}): Promise<Run> {
  const server = await startTestServer({ kinds: [bucketResource] })
  api = server
  cloud = new FakeCloud()
  const manager = new Manager({ client: api.client, log: silentLog })
  const controller = managed({
    ...bucketOptions(cloud),
    pollIntervalMs: 60_000,
    backoff: { baseDelayMs: 5 },
    deletionCheckMs: 5,
    ...change,
  })
  manager.add(controller)
  await manager.start()
  const dispose = async () => {
    await manager.stop({ graceMs: 1_000 })
    await server.close()
  }
  return { buckets: bucketsOf(), controller, [Symbol.asyncDispose]: dispose }
}

const bucketsOf = () => {
  const handle = api.client.resource(bucketResource)
  const get = async (name: string) => await handle.get(name, { namespace })
  return {
    handle,
    get,
    create: (name: string, spec: BucketBody['spec'] = { forProvider: {} }, metadata: object = {}) =>
      handle.create({ metadata: { name, namespace, ...metadata }, spec }),
    annotate: (name: string, values: Record<string, string | null>) =>
      handle.patch(name, { metadata: { annotations: values } }, { type: 'merge', namespace }),
    until: (name: string, type: string, reason: string) =>
      eventually(async () => {
        const bucket = await get(name)
        return findCondition(bucket.status?.conditions, type)?.reason === reason ? bucket : undefined
      }, `${name} to have ${type} ${reason}`),
  }
}

const conditionOf = (bucket: KubeObject<BucketBody>, type: string) => findCondition(bucket.status?.conditions, type)

test('a resource is created once, found, published and ready', async () => {
  await using run = await start()
  await run.buckets.create('a', { forProvider: { size: 2 }, writeConnectionSecretToRef: { name: 'a-connection' } })
  const bucket = await run.buckets.until('a', 'Ready', 'Available')
  equal(bucket.metadata.annotations?.[annotations.externalName], 'a')
  deepEqual(bucket.metadata.finalizers, [managedFinalizer])
  ok(
    Date.parse(bucket.metadata.annotations?.[annotations.createSucceeded] ?? '') >
      Date.parse(bucket.metadata.annotations?.[annotations.createPending] ?? ''),
  )
  deepEqual(bucket.status?.atProvider, { size: 2 })
  equal(bucket.spec.forProvider.region, 'eu', 'late-initialized')
  deepEqual(cloud.things.length, 1)
  const secret = await api.client.resource(secretResource).get('a-connection', { namespace })
  equal(secret.type, 'connection.crossplane.io/v1alpha1')
  deepEqual(Object.keys(secret.data ?? {}).sort(), ['password', 'url'])
  equal(secret.metadata.ownerReferences?.[0]?.uid, bucket.metadata.uid)
  await eventually(() => cloud.connections === 0, 'every connection to be closed')
})

test('a Secret of someone else is not overwritten', async () => {
  await using run = await start()
  await api.client.resource(secretResource).create({ metadata: { name: 'theirs', namespace }, stringData: { key: 'value' } })
  await run.buckets.create('a', { forProvider: {}, writeConnectionSecretToRef: { name: 'theirs' } })
  const bucket = await run.buckets.until('a', 'Synced', 'ReconcileError')
  match(conditionOf(bucket, 'Synced')?.message ?? '', /exists and is not controlled by this Bucket/)
  const secret = await api.client.resource(secretResource).get('theirs', { namespace })
  deepEqual(Object.keys(secret.data ?? {}), ['key'])
})

test('a change of the wanted fields updates the external resource, and a steady one costs no write', async () => {
  await using run = await start({ pollIntervalMs: 50 })
  await run.buckets.create('a', { forProvider: { size: 1 } })
  await run.buckets.until('a', 'Ready', 'Available')
  await run.buckets.handle.patch('a', { spec: { forProvider: { size: 5 } } }, { type: 'merge', namespace })
  await eventually(() => cloud.things[0]?.size === 5, 'the update')
  await eventually(async () => (await run.buckets.get('a')).status?.atProvider?.size === 5, 'the observed size')
  const { resourceVersion } = (await run.buckets.get('a')).metadata
  const observed = cloud.calls.length
  await eventually(() => cloud.calls.length > observed + 4, 'four more polls')
  equal((await run.buckets.get('a')).metadata.resourceVersion, resourceVersion)
})

test('a deletion removes the external resource, then the object (guarantee 5)', async () => {
  await using run = await start({ creationGraceMs: 1 })
  await run.buckets.create('a')
  await run.buckets.until('a', 'Ready', 'Available')
  await run.buckets.handle.delete('a', { namespace })
  await eventually(async () => (await run.buckets.handle.getOrUndefined('a', { namespace })) === undefined, 'the object to be gone')
  deepEqual(cloud.things, [])
})

test('a creation that fails is marked as failed and tried again', async () => {
  await using run = await start()
  let attempts = 0
  cloud.beforeCreate = () => {
    if (++attempts < 3) throw new Error('quota exceeded')
  }
  await run.buckets.create('a')
  const bucket = await run.buckets.until('a', 'Ready', 'Available')
  ok(bucket.metadata.annotations?.[annotations.createFailed])
  equal(attempts, 3)
  equal(cloud.duplicates, 0)
})

test('a creation whose result is not known is not repeated, also not by another process, and the condition explains what to do (guarantee 2)', async () => {
  await using run = await start()
  cloud.afterCreate = () => {
    throw new UnknownOutcomeError('the connection broke')
  }
  await run.buckets.create('a')
  await eventually(async () => /is not known/.test(conditionOf(await run.buckets.get('a'), 'Synced')?.message ?? ''), 'the refusal')
  equal((await run.buckets.get('a')).metadata.annotations?.[annotations.createFailed], undefined)
  const second = new Manager({ client: api.client, log: silentLog })
  const next = managed({ ...bucketOptions(cloud), name: 'next' })
  second.add(next)
  await second.start()
  await eventually(() => next.depth.waiting + next.depth.running === 0, 'the other process to be done')
  deepEqual(cloud.calls, ['observe a', 'create a'])
  // The person found it and removes the mark.
  await run.buckets.annotate('a', { [annotations.createPending]: null })
  await run.buckets.until('a', 'Ready', 'Available')
  equal(cloud.things.length, 1)
  await second.stop({ graceMs: 1_000 })
})

test('a creation that exceeds the time-out is not marked as failed', async () => {
  await using run = await start({ timeoutMs: 100 })
  cloud.beforeCreate = () => new Promise((_, reject) => setTimeout(() => reject(new Error('late')), 200))
  await run.buckets.create('a')
  await eventually(async () => /is not known/.test(conditionOf(await run.buckets.get('a'), 'Synced')?.message ?? ''), 'the refusal')
  equal((await run.buckets.get('a')).metadata.annotations?.[annotations.createFailed], undefined)
})

test('a stale object does not lead to a creation: the pending mark is a conditional write (guarantee 1)', async () => {
  await using server = await startTestServer({ kinds: [bucketResource] })
  api = server
  cloud = new FakeCloud()
  const buckets = bucketsOf()
  await buckets.create('a', { forProvider: {} }, { annotations: { [annotations.externalName]: 'a' }, finalizers: [managedFinalizer] })
  const stale = await buckets.get('a')
  await buckets.annotate('a', { changed: 'meanwhile' })
  const reconciler = new ManagedReconciler(bucketOptions(cloud))
  await rejects(reconciler.reconcile(reconcileRequest({ object: stale, client: api.client })), error => isReason(error, 'Conflict'))
  deepEqual(cloud.things, [])
  deepEqual(cloud.calls, ['observe a'])
})

test('a reference fills a field from the external name of the object it names', async () => {
  await using run = await start({ references: [{ field: 'owner', to: bucketResource }] })
  await run.buckets.create('b', { forProvider: { ownerRef: { name: 'a' } } })
  const waiting = await run.buckets.until('b', 'Synced', 'ReconcileError')
  match(
    conditionOf(waiting, 'Synced')?.message ?? '',
    /cannot resolve references: spec\.forProvider\.ownerRef refers to Bucket "a", which does not exist/,
  )
  await run.buckets.create('a')
  const bucket = await run.buckets.until('b', 'Ready', 'Available')
  equal(bucket.spec.forProvider.owner, 'a')
})

test('a paused resource is left alone, and a reconcile that is asked for is acknowledged', async () => {
  await using run = await start()
  await run.buckets.create('a', undefined, { annotations: { [annotations.paused]: 'true' } })
  await run.buckets.until('a', 'Synced', 'ReconcilePaused')
  deepEqual(cloud.calls, [])
  await run.buckets.annotate('a', { [annotations.paused]: null, [annotations.reconcileRequestedAt]: 'token-1' })
  await run.buckets.until('a', 'Ready', 'Available')
  equal((await run.buckets.get('a')).status?.lastHandledReconcileAt, 'token-1')
})

test('changes are logged with the object before them, and failures with their message', async () => {
  const entries: ChangeLogEntry[] = []
  await using run = await start({ changeLog: entry => void entries.push(entry) })
  let isFirst = true
  cloud.beforeCreate = () => {
    if (isFirst) {
      isFirst = false
      throw new Error('quota exceeded')
    }
  }
  await run.buckets.create('a')
  await run.buckets.until('a', 'Ready', 'Available')
  await run.buckets.handle.delete('a', { namespace })
  await eventually(() => entries.some(({ operation }) => operation === 'DELETE'), 'the deletion')
  const lines = entries.map(({ operation, name, externalName, errorMessage }) => [operation, name, externalName, errorMessage])
  deepEqual(lines, [
    ['CREATE', 'a', 'a', 'quota exceeded'],
    ['CREATE', 'a', 'a', undefined],
    ['DELETE', 'a', 'a', undefined],
  ])
  equal(entries[0]?.snapshot.metadata.annotations?.[annotations.createPending], undefined)
})

test("Crossplane's metrics are counted under its names", async () => {
  const registry = new Registry()
  await using run = await start({ registry, creationGraceMs: 1 })
  await run.buckets.create('a', { forProvider: { size: 1 } })
  await run.buckets.until('a', 'Ready', 'Available')
  await run.buckets.handle.patch('a', { spec: { forProvider: { size: 2 } } }, { type: 'merge', namespace })
  await eventually(() => cloud.things[0]?.size === 2, 'the update')
  await run.buckets.handle.delete('a', { namespace })
  await eventually(async () => (await run.buckets.handle.getOrUndefined('a', { namespace })) === undefined, 'the object to be gone')
  await eventually(async () => {
    const text = await registry.metrics()
    return ['first_time_to_reconcile', 'first_time_to_readiness', 'deletion', 'drift'].every(name =>
      text.includes(`crossplane_managed_resource_${name}_seconds_count{gvk="cloud.example/v1, Kind=Bucket"} 1`),
    )
  }, 'all four metrics')
})

test('what happened is an Event of the resource', async () => {
  await using run = await start()
  await run.buckets.create('a')
  await run.buckets.until('a', 'Ready', 'Available')
  await eventually(async () => {
    const { items } = await api.client.resource(eventResource).listAll({ namespace })
    return items.some(({ reason }) => reason === 'CreatedExternalResource')
  }, 'the Event')
})

test('lock none is the reconcile function itself, and adds no request', async () => {
  const reconcile = async () => undefined
  equal(withLock('none', reconcile, 1), reconcile)
  await using run = await start({ pollIntervalMs: 20 })
  await run.buckets.create('a')
  await run.buckets.until('a', 'Ready', 'Available')
  const requests: string[] = []
  const stop = api.client.observeRequests(({ method }) => void requests.push(method))
  const before = cloud.calls.length
  await eventually(() => cloud.calls.length > before + 5, 'five more polls')
  stop()
  deepEqual(
    requests.filter(method => method !== 'GET'),
    [],
  )
  ok(run.controller)
})

test('a process that lost leadership after it marked a creation as pending does not create (guarantee 3)', async () => {
  await using server = await startTestServer({ kinds: [bucketResource] })
  const fake = new FakeCloud()
  const reconciler = new ManagedReconciler(bucketOptions(fake))
  const { client } = server
  const handle = client.resource(bucketResource)
  const object = await handle.create({ metadata: { name: 'a', namespace }, spec: { forProvider: {} } })
  // One check for each step: external name, connect, observe, finalizer, mark, create.
  let steps = 0
  await rejects(reconciler.reconcile(reconcileRequest({ client, object, isLeading: () => ++steps < 6 })), /leadership was lost/)
  ok((await handle.get('a', { namespace })).metadata.annotations?.[annotations.createPending])
  deepEqual(fake.calls, ['observe a'])
})

test('an option that is out of range is named', () => {
  throws(
    () => managed({ ...bucketOptions(new FakeCloud()), pollIntervalMs: 0 }),
    /pollIntervalMs of managed kind Bucket must be a number > 0, got 0/,
  )
})
