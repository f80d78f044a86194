import { deepEqual, equal, ok } from 'node:assert/strict'
import { test } from 'node:test'
import { Registry } from 'prom-client'
import {
  configMapResource,
  createClient,
  leaseResource,
  type RequestOptions,
  secretResource,
  WrappedClient,
} from '../src/kubernetes/client/index.ts'
import {
  applyOwned,
  bucketLabel,
  bucketOf,
  controller,
  createOrPatch,
  Manager,
  NotOwnerError,
  readShards,
  silentLog,
  watching,
} from '../src/kubernetes/controller/index.ts'
import { controllerReference } from '../src/kubernetes/object/index.ts'
import { eventually } from './support/eventually.ts'
import {
  activeOf,
  type Boat,
  type BoatRequest,
  boatResource,
  keyOf,
  namespace,
  ownerFirst,
  owns,
  ShardedBoats,
  untilReconciled,
} from './support/sharded-boats.ts'

const secretFields = new Set<string>()
const fleet = new ShardedBoats({
  // No test waits for a Lease to expire: a process that stands still for seconds keeps its buckets.
  durations: { leaseDurationMs: 15_000, renewDeadlineMs: 10_000, retryPeriodMs: 300 },
  watches: [
    watching(secretResource, secret => {
      for (const field of Object.keys(secret)) secretFields.add(field)
      return [`${namespace}/${secret.metadata.name}`]
    }),
  ],
})

const boatNames = Array.from({ length: 60 }, (_, index) => `boat-${index}`)

const createBoats = (): Promise<Boat[]> => Promise.all(boatNames.map(name => fleet.create(name)))

test('members share all keys, each key has one owner, and a cache has only the objects of its member', async () => {
  const boats = await createBoats()
  const ring = fleet.newRing(3)
  const members = [await fleet.start(ring), await fleet.start(ring), await fleet.start(ring)]
  await eventually(() => members.every(member => activeOf(member) >= 341), 'three equal parts')
  await untilReconciled(boats, members)
  for (const boat of boats) equal(members.filter(member => owns(member, boat)).length, 1)
  for (const { manager } of members) {
    const cache = manager.informer(boatResource, { sharded: 'root' })
    await eventually(() => cache.list().every(({ metadata }) => manager.shards?.owns(metadata.uid)), 'narrow')
    ok(cache.size < boats.length)
  }
  const view = await readShards(fleet.api.client, ring)
  deepEqual(
    view?.members.map(({ slot, buckets, gaining, losing }) => [slot, buckets.length >= 341, gaining.length, losing.length]),
    [0, 1, 2].map(slot => [slot, true, 0, 0]),
  )
  const uid = boats[0]!.metadata.uid
  const owner = members.find(({ manager }) => manager.shards?.owns(uid))
  equal(view?.ownerOf(bucketOf(uid))?.slot, owner?.manager.shards?.slot)
})

test('a change is reconciled by the owner only, also that of an owned object and of a shared Secret, of which only metadata is watched', async () => {
  const boats = await createBoats()
  const members = await fleet.startTwo()
  await untilReconciled(boats, members)
  const boat = boats[0]!
  const key = keyOf(boat)
  const [owner, other] = ownerFirst(members, boat)
  const counts = () => [owner.reconciled.get(key) ?? 0, other.reconciled.get(key) ?? 0]
  const [first = 0, otherFirst] = counts()
  await fleet.api.client.resource(boatResource).patch(boat.metadata.name, { spec: { seats: 3 } }, { type: 'merge', namespace })
  await eventually(() => counts()[0]! > first, 'a reconcile of the root')
  const request = owner.requests.findLast(candidate => candidate.key === key)!
  equal(request.shard?.bucket, bucketOf(boat.metadata.uid))
  ok(request.shard!.fence > 0)
  const second = counts()[0]!
  const configMap = await applyOwned(request.client.resource(configMapResource), boat, {
    metadata: { name: boat.metadata.name },
    data: { a: 'b' },
  })
  equal(configMap.metadata.labels?.[bucketLabel], String(bucketOf(boat.metadata.uid)))
  await eventually(() => counts()[0]! > second, 'a reconcile for the owned object')
  const third = counts()[0]!
  await fleet.api.client.resource(secretResource).create({ metadata: { name: boat.metadata.name, namespace }, stringData: { a: 'b' } })
  await eventually(() => counts()[0]! > third, 'a reconcile for the Secret')
  deepEqual([...secretFields], ['apiVersion', 'kind', 'metadata'])
  equal(counts()[1], otherFirst)
})

test('an owned object that was created without a bucket gets one when its owner patches it', async () => {
  const [boat] = await createBoats()
  const maps = fleet.api.client.resource(configMapResource)
  await maps.create({ metadata: { name: 'old', namespace, ownerReferences: [controllerReference(boat!)] }, data: { a: '1' } })
  const member = await fleet.start(fleet.newRing(1), async ({ client, object }) => {
    if (object?.metadata.uid !== boat!.metadata.uid) return
    await createOrPatch(client.resource(configMapResource), { name: 'old', namespace }, () => ({
      metadata: { name: 'old', ownerReferences: [controllerReference(object!)] },
      data: { a: '1' },
    }))
  })
  await eventually(async () => (await maps.get('old', { namespace })).metadata.labels?.[bucketLabel], 'a label')
  const cache = member.manager.informer(configMapResource, { sharded: 'owned' })
  await eventually(() => cache.has(`${namespace}/old`), 'in the cache')
})

test('a member that stops gracefully gives its keys to the others first, waits for running reconciles, and releases its slot', async () => {
  const boats = await createBoats()
  const ring = fleet.newRing(2)
  const running = new Set<string>()
  const overlaps: string[] = []
  const reconcile = async ({ key }: BoatRequest) => {
    if (running.has(key)) overlaps.push(key)
    running.add(key)
    await new Promise(resolve => setTimeout(resolve, 20))
    running.delete(key)
  }
  const one = await fleet.start(ring, reconcile)
  const two = await fleet.start(ring, reconcile)
  await eventually(() => activeOf(one) === 512 && activeOf(two) === 512, 'two halves')
  const startedMs = performance.now()
  await one.manager.stop({ graceMs: 20_000 })
  ok(performance.now() - startedMs < 10_000)
  equal(activeOf(two), 1_024)
  await untilReconciled(boats, [two])
  const leases = await fleet.api.client.resource(leaseResource).list({ namespace, labelSelector: `sharding.oarlock.dev/ring=${ring.name}` })
  equal(leases.items.filter(({ metadata, spec }) => /-\d$/.test(metadata.name) && spec?.holderIdentity).length, 1)
  deepEqual(overlaps, [])
})

test('a write for a bucket that moved away is refused and not sent, and the reconcile is aborted after the grace period', async () => {
  const boats = await createBoats()
  const ring = { ...fleet.newRing(2), releaseGraceMs: 200 }
  const errors: unknown[] = []
  const aborted: string[] = []
  const whileReleasing: ReturnType<NonNullable<Manager['shards']>['counts']>[] = []
  const one = await fleet.start(ring, async ({ client, signal, key, object }) => {
    if (!object) return
    await new Promise(resolve => {
      signal.addEventListener('abort', resolve)
      setTimeout(resolve, 3_000)
    })
    if (!signal.aborted) return
    aborted.push(key)
    whileReleasing.push(one.manager.shards!.counts())
    try {
      await client.resource(boatResource).patch(object.metadata.name, { spec: { seats: 9 } }, { type: 'merge', namespace })
    } catch (error) {
      errors.push(error)
    }
  })
  await eventually(() => activeOf(one) === 1_024, 'all buckets')
  const two = await fleet.start(ring)
  await eventually(() => activeOf(two) === 512, 'half of them at the other member')
  await eventually(() => aborted.length > 0, 'an aborted reconcile')
  equal(errors.length, aborted.length)
  ok(errors.every(error => error instanceof NotOwnerError))
  // What is given up is not gained.
  for (const { releasing, gaining } of whileReleasing) deepEqual([releasing > 0, gaining], [true, 0])
  const stored = await fleet.api.client.resource(boatResource).list({ namespace })
  equal(stored.items.length, boats.length)
  ok(stored.items.every(({ spec }) => spec.seats === undefined))
})

test('objects enter and leave a cache with their buckets: its handlers see additions and deletions, and no reconcile a deleted object', async () => {
  const boats = await createBoats()
  const ring = fleet.newRing(2)
  const one = await fleet.start(ring)
  await eventually(() => one.reconciled.size === boats.length, 'all keys')
  const added = new Set<string>()
  const deleted = new Set<string>()
  const cache = one.manager.informer(boatResource, { sharded: 'root' })
  cache.onChange({
    added: ({ metadata }) => void added.add(metadata.name),
    deleted: ({ metadata }) => void deleted.add(metadata.name),
  })
  equal(added.size, boats.length)
  added.clear()
  const two = await fleet.start(ring)
  await eventually(() => activeOf(two) === 512 && deleted.size === boats.length - cache.size, 'half of them to leave')
  ok(deleted.size > 0)
  await two.manager.stop()
  await eventually(() => added.size === deleted.size, 'the same ones to return')
  deepEqual([...added].sort(), [...deleted].sort())
  ok(one.requests.every(({ object }) => object !== undefined))
})

test('a replica without a slot is ready, works on nothing, and takes over when a slot is released', async () => {
  await createBoats()
  const ring = fleet.newRing(1)
  const one = await fleet.start(ring)
  await eventually(() => activeOf(one) === 1_024, 'all buckets')
  const standby = await fleet.start(ring)
  deepEqual(standby.manager.readyz().reasons, [])
  equal(standby.manager.shards?.slot, undefined)
  equal(standby.reconciled.size, 0)
  equal(standby.manager.informer(boatResource, { sharded: 'root' }).size, 0)
  await one.manager.stop()
  await eventually(() => standby.reconciled.size === boatNames.length, 'all keys')
  ok(standby.requests[0]!.shard!.fence > one.requests[0]!.shard!.fence)
})

/** A server without KEP-5866 ignores the parameter. */
class WithoutShardSelector extends WrappedClient {
  override request(options: RequestOptions) {
    return super.request(this.#strip(options))
  }

  override stream(options: RequestOptions) {
    return super.stream(this.#strip(options))
  }

  #strip(options: RequestOptions): RequestOptions {
    const { shardSelector: _, ...query } = options.query ?? {}
    return { ...options, query }
  }
}

test('a server that ignores shardSelector: each member keeps its part only, and each key has one owner', async () => {
  const boats = await createBoats()
  const ring = fleet.newRing(2)
  const client = new WithoutShardSelector(fleet.api.client)
  const members = [await fleet.start(ring, undefined, { client }), await fleet.start(ring, undefined, { client })]
  await eventually(() => members.every(member => activeOf(member) === 512), 'two halves')
  await untilReconciled(boats, members)
  const caches = members.map(({ manager }) => manager.informer(boatResource, { sharded: 'root' }))
  await eventually(() => caches.reduce((sum, { size }) => sum + size, 0) === boats.length, 'each object in one cache')
  for (const boat of boats) equal(members.filter(member => owns(member, boat)).length, 1)
})

test('a deleted root is reconciled once more by its owner, and by no other member', async () => {
  const boats = await createBoats()
  const members = await fleet.startTwo()
  await untilReconciled(boats, members)
  const { name } = boats[5]!.metadata
  const key = keyOf(boats[5]!)
  const [owner, other] = ownerFirst(members, boats[5]!)
  const before = other.reconciled.get(key)
  owner.requests.length = 0
  await fleet.api.client.resource(boatResource).delete(name, { namespace })
  await eventually(() => owner.requests.some(request => request.key === key && request.object === undefined), 'a reconcile')
  equal(other.reconciled.get(key), before)
})

test('metrics show the ring, the buckets of this member and its slowest keys', async () => {
  await createBoats()
  const registry = new Registry()
  const member = await fleet.start(fleet.newRing(1), undefined, { registry })
  await eventually(() => member.reconciled.size === boatNames.length, 'all keys')
  const text = await registry.metrics()
  for (const line of [
    /controller_shards_ring_version\{ring="ring\d+"\} \d/,
    /controller_shards_members\{.*\} 1/,
    /controller_shards_buckets\{.*state="active"\} 1024/,
    /# TYPE controller_shards_bucket_moves_total counter/,
    /controller_shards_bucket_moves_total\{.*direction="gained"\} 1024/,
    /controller_shards_bucket_moves_total\{.*direction="lost"\} 0/,
    /controller_shards_slot\{.*\} 0/,
  ])
    ok(line.test(text), `${line} in ${text}`)
  equal([...text.matchAll(/^controller_shards_slowest_reconcile_seconds\{/gm)].length, 5)
})

test('a manager without shards sends no request for a ring and has no metrics of one', async () => {
  const registry = new Registry()
  const client = await createClient({ kubeconfig: fleet.api.kubeconfigPath })
  const paths: string[] = []
  const recorded = new Proxy(client, {
    get(target, name) {
      const value = Reflect.get(target, name, target) as unknown
      if (typeof value !== 'function') return value
      return (...args: unknown[]) => {
        const [options] = args as [{ path?: string } | undefined]
        if (typeof options?.path === 'string') paths.push(options.path)
        return (value as (...all: unknown[]) => unknown).apply(target, args)
      }
    },
  })
  const manager = new Manager({ client: recorded, log: silentLog, registry })
  manager.add(controller({ name: 'boats', for: boatResource, reconcile: async () => undefined }))
  await manager.start()
  equal(manager.shards, undefined)
  await manager.stop()
  await client.close()
  ok(!(await registry.metrics()).includes('controller_shards'))
  deepEqual(
    paths.filter(path => path.includes('leases')),
    [],
  )
})
