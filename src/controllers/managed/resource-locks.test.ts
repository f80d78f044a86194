import { equal, ok, throws } from 'node:assert/strict'
import { test } from 'node:test'
import { eventually } from '../../../test/support/eventually.ts'
import { type Client, leaseResource, type RequestOptions, type Response, WrappedClient } from '../../kubernetes/client/index.ts'
import { Manager, silentLog } from '../../kubernetes/controller/index.ts'
import type { KubeObject } from '../../kubernetes/object/index.ts'
import { startTestServer, type TestServer } from '../../kubernetes/testing/index.ts'
import { decideLock } from './decide-lock.ts'
import { bucketOptions, bucketResource, FakeCloud } from './fake-cloud.testing.ts'
import { LockLostError, managed, ResourceLocks } from './index.ts'

const namespace = 'default'
const times = { leaseDurationMs: 1_500, renewDeadlineMs: 1_000, retryPeriodMs: 100 }
const signal = new AbortController().signal

const startLocks = async (api: TestServer, identity: string, client: Client = api.client) => {
  const manager = new Manager({ client, log: silentLog })
  const locks = new ResourceLocks(manager, { name: 'cloud', namespace, identity, ...times })
  await manager.start()
  return { manager, locks, client }
}

const createBucket = async (api: TestServer, name: string): Promise<KubeObject<unknown>> =>
  await api.client.resource(bucketResource).create({ metadata: { name, namespace }, spec: { forProvider: {} } })

test('a lock is created, kept, and adopted only when its holder is proven dead', () => {
  const state = (value: 'alive' | 'released' | 'expired') => () => value
  equal(decideLock(undefined, 'a', state('alive')), 'create')
  equal(decideLock({ holder: 'a' }, 'a', state('alive')), 'hold')
  equal(decideLock({ holder: '' }, 'a', state('alive')), 'adopt')
  equal(decideLock({ holder: 'b' }, 'a', state('alive')), 'wait')
  equal(decideLock({ holder: 'b' }, 'a', state('expired')), 'adopt')
  equal(decideLock({ holder: 'b' }, 'a', state('released')), 'adopt')
})

test('of two processes one gets the lock of a resource, keeps it without requests, and the other adopts it after a stop', async () => {
  await using api = await startTestServer({ kinds: [bucketResource] })
  const one = await startLocks(api, 'one')
  const two = await startLocks(api, 'two')
  const bucket = await createBucket(api, 'a')
  const hold = await eventually(() => one.locks.acquire(bucket, signal), 'the lock')
  equal(await two.locks.acquire(bucket, signal), undefined)
  const requests: string[] = []
  const stop = api.client.observeRequests(({ method }) => void requests.push(method))
  for (let count = 0; count < 50; count++) ok(await one.locks.acquire(bucket, signal))
  stop()
  equal(requests.length <= 2, true, `only renewals of the process: ${requests}`)
  hold.check()
  await one.manager.stop({ graceMs: 1_000 })
  throws(() => hold.check(), LockLostError)
  ok(hold.signal.aborted)
  ok(await eventually(() => two.locks.acquire(bucket, signal), 'the other process to adopt the lock'))
  await two.manager.stop({ graceMs: 1_000 })
})

/** A network that can be cut: requests fail, open watches go on. */
class CuttableClient extends WrappedClient {
  isCut = false

  override request(options: RequestOptions): Promise<Response> {
    return this.isCut ? Promise.reject(new Error('the network is cut')) : super.request(options)
  }
}

test('a process that cannot renew loses its locks before another one adopts them', async () => {
  await using api = await startTestServer({ kinds: [bucketResource] })
  const client = new CuttableClient(api.client)
  const one = await startLocks(api, 'one', client)
  const two = await startLocks(api, 'two')
  const bucket = await createBucket(api, 'a')
  const hold = await eventually(() => one.locks.acquire(bucket, signal), 'the lock')
  let lostMs = Number.POSITIVE_INFINITY
  hold.signal.addEventListener('abort', () => {
    lostMs = performance.now()
  })
  client.isCut = true
  ok(await eventually(() => two.locks.acquire(bucket, signal), 'the other process to adopt the lock'))
  ok(performance.now() > lostMs)
  throws(() => hold.check(), LockLostError)
  // When its network is back it has a Lease again, and not the lock.
  client.isCut = false
  await eventually(() => one.locks.hasLease, 'its own Lease')
  equal(await one.locks.acquire(bucket, signal), undefined)
  await Promise.all([one.manager.stop({ graceMs: 1_000 }), two.manager.stop({ graceMs: 1_000 })])
})

test('the lock of a deleted resource is deleted with it', async () => {
  await using api = await startTestServer({ kinds: [bucketResource] })
  const one = await startLocks(api, 'one')
  const bucket = await createBucket(api, 'a')
  await eventually(() => one.locks.acquire(bucket, signal), 'the lock')
  const lock = `cloud-${bucket.metadata.uid}`
  ok(await api.client.resource(leaseResource).get(lock, { namespace }))
  await api.client.resource(bucketResource).delete('a', { namespace })
  await eventually(async () => !(await api.client.resource(leaseResource).getOrUndefined(lock, { namespace })), 'the Lease to be collected')
  await one.manager.stop({ graceMs: 1_000 })
})

test('a lock that someone deleted is created again by one of the processes, and the other loses it', async () => {
  await using api = await startTestServer({ kinds: [bucketResource] })
  const one = await startLocks(api, 'one')
  const two = await startLocks(api, 'two')
  const bucket = await createBucket(api, 'a')
  await eventually(() => one.locks.acquire(bucket, signal), 'the lock')
  await api.client.resource(leaseResource).delete(`cloud-${bucket.metadata.uid}`, { namespace })
  ok(await eventually(() => two.locks.acquire(bucket, signal), 'the other process to get it'))
  await eventually(async () => (await one.locks.acquire(bucket, signal)) === undefined, 'the first one to lose it')
  await Promise.all([one.manager.stop({ graceMs: 1_000 }), two.manager.stop({ graceMs: 1_000 })])
})

test('two replicas with one Lease per resource work on each resource once, and a stop hands it over', async () => {
  await using api = await startTestServer({ kinds: [bucketResource] })
  const cloud = new FakeCloud()
  const start = async (identity: string) => {
    const manager = new Manager({ client: api.client, log: silentLog })
    const lock = new ResourceLocks(manager, { name: 'cloud', namespace, identity, ...times })
    manager.add(managed({ ...bucketOptions(cloud), name: `buckets-${identity}`, lock, pollIntervalMs: 200, creationGraceMs: 1 }))
    await manager.start()
    return manager
  }
  const [one, two] = [await start('one'), await start('two')]
  const names = Array.from({ length: 20 }, (_, index) => `b${index}`)
  for (const name of names) await createBucket(api, name)
  await eventually(() => cloud.things.length === names.length, 'all to exist')
  equal(cloud.duplicates, 0)
  await one.stop({ graceMs: 1_000 })
  cloud.calls.length = 0
  await eventually(() => names.every(name => cloud.calls.includes(`observe ${name}`)), 'the other replica to observe all')
  equal(cloud.duplicates, 0)
  await two.stop({ graceMs: 1_000 })
})
