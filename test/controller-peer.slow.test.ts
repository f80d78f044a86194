import { deepEqual, equal, ok } from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { type Client, configMapResource, createClient, installKinds, metadataOnly } from '../src/kubernetes/client/index.ts'
import {
  addFinalizer,
  controller,
  createOrPatch,
  EventRecorder,
  Manager,
  patchStatusIfChanged,
  removeFinalizer,
  silentLog,
  withProgress,
} from '../src/kubernetes/controller/index.ts'
import { controllerReference } from '../src/kubernetes/object/index.ts'
import { withFaults } from '../src/kubernetes/testing/index.ts'
import { type Peer, peerMissing, startPeer } from './conformance/peer.ts'
import { boatResource } from './support/boat.ts'
import { eventually } from './support/eventually.ts'

/** The library against a real kube-apiserver, where one was built (`scripts/build-peers.sh`). */
const skip = peerMissing()

let peer: Peer
let client: Client
before(async () => {
  if (skip) return
  peer = await startPeer()
  client = await createClient({ cluster: { server: peer.url, token: peer.tokens.admin, insecureSkipTlsVerify: true } })
  await installKinds(client, [boatResource])
})
after(async () => {
  await client?.close()
  await peer?.close()
})

test('kube-apiserver: caches fill by a watch, by pages and with metadata only, and the client selects the objects of its shard', {
  skip,
}, async () => {
  const maps = client.resource(configMapResource)
  const names = Array.from({ length: 40 }, (_, index) => `map-${String(index).padStart(2, '0')}`)
  await Promise.all(names.map(name => maps.create({ metadata: { name, labels: { set: 'a' } }, data: { x: 'y' } })))
  const labelSelector = 'set=a'
  for (const streamLists of [true, false]) {
    const asked: string[] = []
    const spy = withFaults(client, {
      filter({ path, query }) {
        if (path.endsWith('/configmaps')) asked.push(query?.sendInitialEvents ? 'stream' : query?.watch ? 'watch' : 'page')
        return false
      },
    })
    const manager = new Manager({ client: spy, listWatch: { streamLists, pageSize: 15 } })
    const whole = manager.informer(configMapResource, { labelSelector })
    await manager.start()
    deepEqual(
      [...whole.keys()].sort(),
      names.map(name => `default/${name}`),
    )
    equal(asked[0], streamLists ? 'stream' : 'page', 'the server has lists over watches')
    await maps.patch('map-00', { data: { x: String(streamLists) } }, { type: 'merge' })
    await eventually(() => whole.get('default/map-00')?.data?.x === String(streamLists), 'the watch to continue')
    equal(asked.filter(each => each === 'page').length, streamLists ? 0 : 3)
    await manager.stop()
  }
  const manager = new Manager({ client })
  const partial = manager.informer(metadataOnly(configMapResource), { labelSelector })
  const shards = ['0x0000000000000000', '0x8000000000000000', '0x10000000000000000'].map(bound => `'${bound}'`)
  const halves = [0, 1].map(index =>
    manager.informer(configMapResource, {
      labelSelector,
      shardSelector: `shardRange(object.metadata.uid, ${shards[index]}, ${shards[index + 1]})`,
    }),
  )
  await manager.start()
  deepEqual([partial.size, Object.keys(partial.get('default/map-01') ?? {}).sort()], [40, ['apiVersion', 'kind', 'metadata']])
  deepEqual(
    halves.flatMap(half => [...half.keys()]).sort(),
    names.map(name => `default/${name}`),
  )
  await manager.stop()
})

test('kube-apiserver: a controller with finalizer, owned object, conditions, events and leader election, under faults', {
  skip,
}, async () => {
  const faulty = withFaults(client, { seed: 3, drop: 0.01, dropResponse: 0.01, conflict: 0.01, internalError: 0.01, breakWatch: 0.02 })
  const identity = 'one'
  const manager = new Manager({
    log: silentLog,
    client: faulty,
    listWatch: { backoff: { minMs: 5, maxMs: 100 } },
    leaderElection: { leaseName: 'boats', namespace: 'default', identity },
  })
  const boats = manager.informer(boatResource)
  const events = new EventRecorder({ client: faulty, component: 'boats' })
  const finalizer = 'test.oarlock.dev/crew'
  manager.add(
    controller({
      name: 'boats',
      for: boatResource,
      owns: [metadataOnly(configMapResource)],
      backoff: { baseDelayMs: 2, maxDelayMs: 100 },
      validate: true,
      async reconcile({ key, name, namespace }) {
        const boat = boats.get(key)
        if (!boat) return
        if (boat.metadata.deletionTimestamp) {
          boats.applyLocal(await removeFinalizer(faulty, boat, finalizer))
          return
        }
        const held = await addFinalizer(faulty, boat, finalizer)
        boats.applyLocal(held)
        await createOrPatch(faulty.resource(configMapResource), { name: `${name}-orders`, namespace }, current => ({
          ...current,
          metadata: { ownerReferences: [controllerReference(boat)] },
          data: { seats: String(boat.spec.seats) },
        }))
        const status = withProgress(
          held,
          { ...held.status, manned: held.spec.seats },
          { state: 'ready', reason: 'Manned', message: 'all seats are taken' },
        )
        boats.applyLocal(await patchStatusIfChanged(faulty, held, status))
        events.normal(boat, 'Manned', 'all seats are taken')
      },
    }),
  )
  await manager.start()
  try {
    await manager.whenLeader
    const handle = client.resource(boatResource)
    const names = Array.from({ length: 30 }, (_, index) => `boat-${index}`)
    await Promise.all(names.map(name => handle.create({ metadata: { name }, spec: { seats: 2 } })))
    const areReady = (seats: number) =>
      boats.list().filter(({ status, metadata }) => status?.manned === seats && status.observedGeneration === metadata.generation).length
    await eventually(() => areReady(2) === 30, 'all are ready', 30_000)
    await client.resource(configMapResource).delete('boat-3-orders')
    await Promise.all(names.map(name => handle.patch(name, { spec: { seats: 5 } }, { type: 'merge' })))
    await eventually(() => areReady(5) === 30, 'all follow', 30_000)
    equal((await client.resource(configMapResource).get('boat-3-orders')).data?.seats, '5')
    await Promise.all(names.map(name => handle.delete(name)))
    await eventually(() => boats.size === 0, 'all are gone', 30_000)
    await events.flush()
    ok(Object.values(faulty.injected).some(count => count > 0))
  } finally {
    await manager.stop({ graceMs: 2_000 })
  }
})
