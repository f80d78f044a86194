import { deepEqual, equal, ok, rejects, throws } from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import Type from 'typebox'
import {
  type Client,
  ConnectionError,
  configMapResource,
  crdResource,
  createClient,
  eventResource,
  installKinds,
  metadataOnly,
  secretResource,
} from '../src/kubernetes/client/index.ts'
import {
  addFinalizer,
  controller,
  createOrPatch,
  EventRecorder,
  Manager,
  patchStatusIfChanged,
  predicates,
  removeFinalizer,
  silentLog,
} from '../src/kubernetes/controller/index.ts'
import { defineResource, StatusError } from '../src/kubernetes/object/index.ts'
import { type ApiServer, startServer } from '../src/kubernetes/server/index.ts'
import { withFaults } from '../src/kubernetes/testing/index.ts'
import { boatResource } from './support/boat.ts'
import { eventually } from './support/eventually.ts'

const dataDir = mkdtempSync(join(tmpdir(), 'oarlock-client-server-'))
let server: ApiServer
let client: Client

before(async () => {
  server = await startServer({ dataDir, listen: { port: 0 }, unixSocket: join(dataDir, 'api.sock'), storage: { synchronous: 'OFF' } })
  client = await createClient({ kubeconfig: server.kubeconfigPath })
  await installKinds(client, [boatResource])
})

after(async () => {
  await client?.close()
  await server?.close()
  rmSync(dataDir, { recursive: true, force: true })
})

test('creates, reads, updates, patches, applies, lists and deletes objects of a declared kind', async () => {
  const boats = client.resource(boatResource)
  const created = await boats.create({ metadata: { name: 'pinta', labels: { fleet: 'one' } }, spec: { seats: 3 } })
  deepEqual([created.kind, created.metadata.namespace, created.metadata.generation], ['Boat', 'default', 1])
  await rejects(boats.create({ metadata: { name: 'pinta' }, spec: { seats: 3 } }), { reason: 'AlreadyExists' })
  await rejects(boats.create({ metadata: { name: 'bad' }, spec: { seats: 'many' as unknown as number } }), {
    reason: 'Invalid',
    message: /spec\.seats/,
  })
  const updated = await boats.update({ ...created, spec: { seats: 4 } })
  await rejects(boats.update({ ...created, spec: { seats: 5 } }), { reason: 'Conflict' })
  equal(updated.metadata.generation, 2)
  equal((await boats.patch('pinta', { spec: { color: 'red' } }, { type: 'merge' })).spec.color, 'red')
  equal((await boats.patch('pinta', [{ op: 'remove', path: '/spec/color' }], { type: 'json' })).spec.color, undefined)
  const manned = await boats.patchStatus('pinta', { status: { manned: 2 } })
  deepEqual([manned.status?.manned, manned.metadata.generation], [2, 4])
  await rejects(boats.patchStatus('pinta', { status: { manned: 9 } }, { resourceVersion: created.metadata.resourceVersion }), {
    reason: 'Conflict',
  })
  equal((await boats.apply({ metadata: { name: 'nina' }, spec: { seats: 1 } })).spec.seats, 1)
  await rejects(boats.apply({ metadata: { name: 'nina' }, spec: { seats: 2 } }, { fieldManager: 'other' }), { reason: 'Conflict' })
  equal((await boats.apply({ metadata: { name: 'nina' }, spec: { seats: 2 } }, { fieldManager: 'other', force: true })).spec.seats, 2)
  equal((await boats.list({ labelSelector: 'fleet=one' })).items.length, 1)
  equal((await boats.listAll({ limit: 1 })).items.length, 2)
  equal(await boats.getOrUndefined('none'), undefined)
  await rejects(boats.delete('nina', { preconditions: { uid: 'wrong' } }), { reason: 'Conflict' })
  for (const name of ['pinta', 'nina']) await boats.delete(name)
  await rejects(boats.get('pinta'), { reason: 'NotFound' })
})

test('a controller updates every status, reads its own writes, cleans up on deletion, and records events', async () => {
  const manager = new Manager({ client })
  const boats = manager.informer(boatResource, { indexes: { seats: ({ spec }) => [String(spec.seats)] } })
  const events = new EventRecorder({ client, component: 'boats' })
  const handle = client.resource(boatResource)
  const finalizer = 'test.oarlock.dev/crew'
  const stale: string[] = []
  const released: string[] = []
  const written = new Map<string, string>()
  manager.add(
    controller({
      name: 'boats',
      for: boatResource,
      owns: [configMapResource],
      predicates: [predicates.generationChanged],
      async reconcile({ key, name, namespace }) {
        const boat = boats.get(key)
        if (!boat) return
        const last = written.get(key)
        if (last !== undefined && BigInt(boat.metadata.resourceVersion) < BigInt(last)) stale.push(key)
        if (boat.metadata.deletionTimestamp) {
          released.push(name)
          await removeFinalizer(handle, boat, finalizer)
          return
        }
        const held = await addFinalizer(handle, boat, finalizer)
        await createOrPatch(client.resource(configMapResource), { name, namespace }, current => ({
          ...current,
          metadata: {
            ...current?.metadata,
            ownerReferences: [{ apiVersion: boat.apiVersion, kind: boat.kind, name, uid: boat.metadata.uid, controller: true }],
          },
          data: { seats: String(boat.spec.seats) },
        }))
        const done = await patchStatusIfChanged(client, held, { ...held.status, manned: boat.spec.seats })
        boats.applyLocal(done)
        written.set(key, done.metadata.resourceVersion)
        events.normal(boat, 'Manned', `${boat.spec.seats} seats are taken`)
      },
    }),
  )
  await manager.start()
  try {
    const names = Array.from({ length: 60 }, (_, index) => `boat-${index}`)
    await Promise.all(names.map((name, index) => handle.create({ metadata: { name }, spec: { seats: index % 7 } })))
    const isManned = () => boats.list('default').filter(({ spec, status }) => status?.manned === spec.seats).length === 60
    await eventually(isManned, 'every status to be updated', 20_000)
    await Promise.all(names.map(name => handle.patch(name, { spec: { seats: 9 } }, { type: 'merge' })))
    await eventually(() => isManned() && boats.byIndex('seats', '9').length === 60, 'every status to follow the changed spec', 20_000)
    equal((await client.resource(configMapResource).get('boat-3')).data?.seats, '9')
    deepEqual(stale, [], 'no reconcile read an older version than it wrote before')
    await Promise.all(names.map(name => handle.delete(name)))
    await eventually(() => boats.size === 0, 'all boats to be deleted', 20_000)
    // An event of its ConfigMap may trigger another reconcile before the cache has the deletion.
    deepEqual([...new Set(released)].sort(), names.sort())
    await events.flush()
    ok(
      (await client.resource(eventResource).list({ namespace: 'default' })).items.some(
        ({ reason, involvedObject }) => reason === 'Manned' && involvedObject.name === 'boat-3',
      ),
    )
  } finally {
    await manager.stop({ graceMs: 2_000 })
  }
})

test('an informer has the state of the server after the server restarts', async () => {
  const secrets = client.resource(secretResource)
  const manager = new Manager({ client, log: silentLog, listWatch: { backoff: { minMs: 20, maxMs: 200 } } })
  const informer = manager.informer(secretResource, { labelSelector: 'set=a' })
  await manager.start()
  try {
    await secrets.create({ metadata: { name: 'one', labels: { set: 'a' } }, stringData: { x: '1' } })
    await secrets.create({ metadata: { name: 'other', labels: { set: 'b' } }, stringData: { x: '1' } })
    const one = await secrets.get('one')
    await eventually(
      () => informer.get('default/one')?.metadata.resourceVersion === one.metadata.resourceVersion,
      'the object in the cache',
    )
    const { port } = server
    await server.close({ graceMs: 100 })
    server = await startServer({ dataDir, listen: { port }, unixSocket: join(dataDir, 'api.sock'), storage: { synchronous: 'OFF' } })
    // The client may not have noticed the broken connection yet, and does not retry a create.
    const two = { metadata: { name: 'two', labels: { set: 'a' } } }
    await secrets.create(two).catch(error => (error instanceof ConnectionError ? secrets.apply(two) : Promise.reject(error)))
    await secrets.patch('one', { metadata: { labels: { set: 'b' } } }, { type: 'merge' })
    await eventually(
      () =>
        informer
          .list()
          .map(({ metadata }) => metadata.name)
          .join() === 'two',
      'the cache to follow the server',
      10_000,
    )
  } finally {
    await manager.stop()
  }
})

test('a streaming list, pages, and the fallback from a rejected stream to pages fill a cache with the same objects', async () => {
  const boats = client.resource(boatResource)
  const names = Array.from({ length: 30 }, (_, index) => `listed-${String(index).padStart(2, '0')}`)
  for (const name of names) await boats.create({ metadata: { name, labels: { set: 'listed' } }, spec: { seats: 1 } })
  const filled = async (streamLists: boolean, reject?: () => StatusError) => {
    const requests: string[] = []
    const spy = withFaults(client, {
      filter({ path, query }) {
        if (path.endsWith('/boats')) requests.push(query?.sendInitialEvents ? 'stream' : query?.watch ? 'watch' : 'page')
        return false
      },
    })
    if (reject) {
      spy.stream = async options => {
        if (options.query?.sendInitialEvents) throw reject()
        return await client.stream(options)
      }
    }
    const manager = new Manager({ client: spy, listWatch: { streamLists, pageSize: 7, backoff: { minMs: 5, maxMs: 20 } } })
    const informer = manager.informer(boatResource, { labelSelector: 'set=listed', hotObjects: 4 })
    const added: string[] = []
    informer.onChange({ added: ({ metadata }, isInitial) => void added.push(`${metadata.name} ${isInitial}`) })
    await manager.start()
    await boats.patch('listed-00', { spec: { seats: 2 + added.length } }, { type: 'merge' })
    const version = (await boats.get('listed-00')).metadata.resourceVersion
    await eventually(() => informer.get('default/listed-00')?.metadata.resourceVersion === version, 'an event of the watch')
    await manager.stop()
    deepEqual(
      added.sort(),
      names.map(name => `${name} true`),
    )
    equal(informer.size, 30)
    return requests
  }
  deepEqual(await filled(true), ['stream'])
  deepEqual(await filled(false), ['page', 'page', 'page', 'page', 'page', 'watch'])
  const rejected = await filled(true, () => new StatusError('Invalid', 'sendInitialEvents is forbidden'))
  deepEqual(rejected, ['page', 'page', 'page', 'page', 'page'], 'the watch does not pass through request() here')
  await Promise.all(names.map(name => boats.delete(name)))
})

test('metadataOnly gets and watches metadata with the original kind; cached objects are frozen', async () => {
  const handle = client.resource(configMapResource)
  const created = await handle.create({ metadata: { name: 'meta', labels: { a: 'b' } }, data: { big: 'x'.repeat(1_000) } })
  const reduced = metadataOnly(configMapResource)
  equal(metadataOnly(configMapResource), reduced)
  const partial = await client.resource(reduced).get('meta')
  deepEqual([partial.kind, partial.apiVersion, Object.keys(partial).sort()], ['ConfigMap', 'v1', ['apiVersion', 'kind', 'metadata']])
  const manager = new Manager({ client })
  const informer = manager.informer(reduced, { namespace: 'default' })
  const whole = manager.informer(configMapResource, { namespace: 'default' })
  await manager.start()
  try {
    equal(informer.get('default/meta')?.metadata.uid, created.metadata.uid)
    equal('data' in (informer.get('default/meta') ?? {}), false)
    equal(whole.get('default/meta')?.data?.big?.length, 1_000)
    await handle.patch('meta', { metadata: { labels: { a: 'c' } } }, { type: 'merge' })
    await eventually(() => informer.get('default/meta')?.metadata.labels?.a === 'c', 'the changed label')
    const read = whole.get('default/meta') as { data: Record<string, string> }
    throws(() => {
      read.data.big = 'mine'
    }, /read only/)
  } finally {
    await manager.stop()
  }
})

test('the caches have the result of a write through manager.client when the write resolves, but not of a dry run', async () => {
  const manager = new Manager({ client })
  const boats = manager.informer(boatResource)
  const red = manager.informer(boatResource, { labelSelector: 'color=red' })
  const partial = manager.informer(metadataOnly(boatResource))
  await manager.start()
  try {
    const handle = manager.client.resource(boatResource)
    const seats = () => boats.get('default/fast')?.spec.seats
    const created = await handle.create({ metadata: { name: 'fast', labels: { color: 'red' } }, spec: { seats: 1 } })
    deepEqual([seats(), red.size, partial.get('default/fast') && 'spec' in partial.get('default/fast')!], [1, 1, false])
    throws(() => {
      created.spec.seats = 7
    }, /read only/)
    await handle.patch('fast', { spec: { seats: 3 } }, { type: 'merge', dryRun: true })
    equal(seats(), 1)
    await handle.patch('fast', { spec: { seats: 2 }, metadata: { labels: { color: 'blue' } } }, { type: 'merge' })
    deepEqual([seats(), red.size], [2, 0])
    await handle.patchStatus('fast', { status: { manned: 2 } })
    equal(boats.get('default/fast')?.status?.manned, 2)
    await handle.delete('fast')
    deepEqual([seats(), partial.get('default/fast')], [undefined, undefined])
    await handle.apply({ metadata: { name: 'fast', finalizers: ['test.oarlock.dev/x'] }, spec: { seats: 5 } })
    await handle.delete('fast')
    ok(boats.get('default/fast')?.metadata.deletionTimestamp, 'the object waits for its finalizer')
    const [fast] = boats.list().filter(({ metadata }) => metadata.name === 'fast')
    await removeFinalizer(manager.client, fast!, 'test.oarlock.dev/x')
    await eventually(() => boats.get('default/fast') === undefined, 'the object to be deleted')
  } finally {
    await manager.stop()
  }
})

test('installKinds reports the conditions of a CRD whose kind cannot be served', async () => {
  const twin = defineResource({
    group: 'test.oarlock.dev',
    version: 'v1',
    kind: 'Boat',
    plural: 'twins',
    scope: 'Namespaced',
    description: 'A conflicting kind.',
    spec: Type.Object({}),
    status: Type.Object({}),
  })
  await rejects(
    installKinds(client, [twin], { timeoutMs: 50 }),
    /twins of test\.oarlock\.dev\/v1 are not served after 50 ms: .*NamesAccepted is False: .*Boat/,
  )
  await client.resource(crdResource).delete('twins.test.oarlock.dev')
  await rejects(client.resource(twin).list(), /the server does not serve this resource, is its CRD installed\?/)
})

test('two shards by shardSelector contain all objects, whether the server supports the parameter or not', async () => {
  const handle = client.resource(configMapResource)
  const names = Array.from({ length: 20 }, (_, index) => `shard-${index}`)
  for (const name of names) await handle.create({ metadata: { name, labels: { set: 'shard' } } })
  const half = (start: string, end: string) => `shardRange(object.metadata.uid, '${start}', '${end}')`
  const halves = [half('0x0000000000000000', '0x8000000000000000'), half('0x8000000000000000', '0x10000000000000000')]
  const withoutShards = withFaults(client, {})
  const dropShardSelector = <Options extends { query?: object }>(options: Options) => ({
    ...options,
    query: { ...options.query, shardSelector: undefined },
  })
  withoutShards.request = options => client.request(dropShardSelector(options))
  withoutShards.stream = options => client.stream(dropShardSelector(options))
  for (const each of [client, withoutShards]) {
    const manager = new Manager({ client: each })
    const informers = halves.map(shardSelector => manager.informer(configMapResource, { labelSelector: 'set=shard', shardSelector }))
    await manager.start()
    const found = informers.map(informer => informer.list().map(({ metadata }) => metadata.name))
    ok(
      found.every(part => part.length > 0 && part.length < 20),
      JSON.stringify(found),
    )
    deepEqual(found.flat().sort(), [...names].sort())
    await manager.stop()
  }
  const list = await handle.list({ shardSelector: halves[0] })
  ok(list.items.length > 0 && list.items.length < 20 + 10)
})

test('a client of the Unix socket sends pipelined and long requests and reads a watch, and explains a socket that does not exist', async () => {
  const cluster = { server: server.unixSocketUrl ?? '', token: server.adminToken }
  const local = await createClient({ cluster })
  try {
    const maps = local.resource(configMapResource)
    const { metadata } = await maps.create({ metadata: { name: 'over-unix', namespace: 'default' }, data: { a: '1' } })
    const watching = maps.watch({ namespace: 'default', resourceVersion: metadata.resourceVersion })[Symbol.asyncIterator]()
    const names = await Promise.all(Array.from({ length: 50 }, () => maps.get('over-unix')))
    equal(new Set(names.map(each => each.metadata.uid)).size, 1)
    const big = 'x'.repeat(300_000)
    await maps.patch('over-unix', { data: { big } }, { type: 'merge' })
    const { value } = await watching.next()
    deepEqual([value?.type, value?.object.data?.big?.length], ['MODIFIED', big.length])
    await watching.return?.()
    ok((await maps.listAll()).items.some(each => each.metadata.name === 'over-unix'))
  } finally {
    await local.close()
  }
  await rejects(createClient({ cluster: { ...cluster, server: 'unix://api.sock' } }), {
    name: 'TypeError',
    message: /^cluster\.server: URL .* must be/,
  })
  const missing = await createClient({ cluster: { ...cluster, server: `unix://${dataDir}/missing.sock` }, random: () => 0 })
  await rejects(missing.request({ method: 'GET', path: '/version' }), {
    name: 'ConnectionError',
    code: 'ENOENT',
    message: new RegExp(
      `^GET /version on unix://${dataDir}/missing\\.sock: the Unix socket does not exist \\(ENOENT\\): is the server running`,
    ),
  })
  await missing.close()
})
