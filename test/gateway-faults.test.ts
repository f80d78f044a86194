/** Watches over several partitions while a partition is away. */
import { deepEqual, equal, ok } from 'node:assert/strict'
import { cpSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { configMapResource, listWatch, namespaceResource } from '../src/kubernetes/client/index.ts'
import { seededRandom } from '../src/kubernetes/util/index.ts'
import { eventually } from './support/eventually.ts'
import { FaultedClients } from './support/gateway/faulted-clients.ts'
import { makeFaults } from './support/gateway/faults.ts'
import { GatewayFixture } from './support/gateway/gateway-fixture.ts'
import { Watched } from './support/gateway/watched.ts'
import { type NetworkProxy, startProxy } from './support/proxy.ts'

test('while a partition is away, the events of the others wait; then all come, once and in order', { timeout: 60_000 }, async () => {
  await using fixture = await GatewayFixture.start({ home: [], t1: ['Tenants'], t2: ['Tenants'] })
  const { client } = fixture
  for (const [name, tenant] of Object.entries({ a: 't1', b: 't2' }))
    await client.resource(namespaceResource).create({ metadata: { name, labels: { 'oarlock.dev/tenant': tenant } } })
  const configMaps = client.resource(configMapResource)
  const create = (namespace: string, name: string) => configMaps.create({ metadata: { name, namespace } })
  const list = (await (await client.request({ method: 'GET', path: '/api/v1/configmaps' })).json()) as {
    metadata: { resourceVersion: string }
  }
  const watched = new Watched(client, `/api/v1/configmaps?watch=true&resourceVersion=${list.metadata.resourceVersion}`)
  await create('a', 'a-0')
  await create('b', 'b-0')
  await eventually(() => watched.versions.length === 2, 'the events before')
  for (let round = 1; round <= 3; round++) {
    await fixture.servers.get('t2')?.close({ graceMs: 10 })
    const made = await Promise.all([1, 2, 3].map(number => create('a', `a-${round}-${number}`)))
    equal(made.length, 3)
    // Nothing of the partition that is away can be later than what is shown, so what may be earlier must be waited for.
    await new Promise(resolve => setTimeout(resolve, 200))
    ok(watched.versions.length <= 2 + (round - 1) * 4, `${watched.versions.length} events in round ${round}`)
    await fixture.startPartition('t2')
    await eventually(async () => await create('b', `b-${round}`).catch(() => undefined), 'the partition to be back')
    await eventually(() => watched.versions.length === 2 + round * 4, `the events of round ${round}`)
  }
  const { versions } = watched
  deepEqual(
    versions,
    [...versions].sort((x, y) => x - y),
  )
  equal(new Set(versions).size, versions.length)
  equal(watched.isEnded, false)
  await watched.stop()
})

test('a partition is killed, paused, cut off, or its clock is 30 s off: no event, object or list is wrong', {
  timeout: 180_000,
}, async t => {
  let proxy: NetworkProxy | undefined
  await using fixture = await GatewayFixture.start(
    { home: [], t1: ['Tenants'], t2: ['Tenants'] },
    {},
    {
      processes: ['t2'],
      async addressOf(name, { url, port }) {
        if (name !== 't2') return url
        proxy = await startProxy(port)
        return `https://127.0.0.1:${proxy.port}`
      },
    },
  )
  t.after(() => proxy?.close())
  const { client } = fixture
  for (const [name, tenant] of Object.entries({ a: 't1', b: 't2' }))
    await client.resource(namespaceResource).create({ metadata: { name, labels: { 'oarlock.dev/tenant': tenant } } })
  const random = seededRandom(Number(process.env.SEED ?? 1))
  const clients = new FaultedClients(client, ['a', 'b'], random)
  t.after(() => clients.close())
  await clients.start()
  for (const [name, fault] of Object.entries(makeFaults(fixture, 't2', proxy as NetworkProxy, random))) {
    await fault()
    t.diagnostic(`${name}: ${JSON.stringify(clients.counts)}, events and lists ${clients.informers}`)
  }
  const { writes, events, lists, relists } = await clients.finish()
  t.diagnostic(`${writes} writes, ${events} events, ${lists} lists, ${relists} lists again`)
  ok(writes > 100 && events > 100 && lists > 10)
})

test('a partition that comes back with an older data directory makes clients list again', { timeout: 60_000 }, async t => {
  await using fixture = await GatewayFixture.start({ home: [], t1: ['Tenants'], t2: ['Tenants'] }, {}, { processes: ['t2'] })
  const { client } = fixture
  for (const [name, tenant] of Object.entries({ a: 't1', b: 't2' }))
    await client.resource(namespaceResource).create({ metadata: { name, labels: { 'oarlock.dev/tenant': tenant } } })
  const configMaps = client.resource(configMapResource)
  const create = (namespace: string, name: string) => configMaps.create({ metadata: { name, namespace } })
  await create('b', 'kept')
  const { port } = fixture.processOf('t2')
  await fixture.processOf('t2').close()
  const copy = mkdtempSync(join(tmpdir(), 'oarlock-older-'))
  t.after(() => rmSync(copy, { recursive: true, force: true }))
  cpSync(fixture.dataDirOf('t2'), copy, { recursive: true })
  await fixture.startPartition('t2', port)
  const abort = new AbortController()
  t.after(() => abort.abort())
  const seen = new Map<string, Set<string>>()
  let replaced = 0
  for (const [name, labelSelector] of Object.entries({ everything: undefined, selected: 'app!=x' })) {
    const names = new Set<string>()
    seen.set(name, names)
    void listWatch(client, configMapResource, {
      ...{ labelSelector, signal: abort.signal, backoff: { minMs: 50, maxMs: 200 } },
      onReplace(items) {
        replaced++
        names.clear()
        for (const { metadata } of items) names.add(metadata.name)
      },
      onEvent({ type, object }) {
        if (type === 'DELETED') names.delete(object.metadata.name)
        else if (type !== 'BOOKMARK') names.add(object.metadata.name)
      },
    })
  }
  const all = () => [...seen.values()]
  await eventually(() => replaced === 2 && all().every(names => names.has('kept')), 'the lists')
  await eventually(async () => await create('b', 'lost').catch(() => undefined), 'the partition to be back')
  await create('a', 'other')
  await eventually(() => all().every(names => names.has('lost') && names.has('other')), 'the events')
  await fixture.processOf('t2').kill()
  rmSync(fixture.dataDirOf('t2'), { recursive: true })
  cpSync(copy, fixture.dataDirOf('t2'), { recursive: true })
  await fixture.startPartition('t2', port)
  // Writes until then have versions above what was lost.
  await eventually(async () => await create('b', 'later').catch(() => undefined), 'the partition to be back')
  await eventually(() => all().every(names => names.has('later') && !names.has('lost') && names.has('other')), 'the lists again')
  equal(replaced, 4)
})
