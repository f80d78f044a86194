import { deepEqual, equal, ok, rejects, throws } from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer as createProxy } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
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
import { type ApiServer, adminsGroup, issueClientCertificate, startServer } from '../src/kubernetes/server/index.ts'
import { withFaults } from '../src/kubernetes/testing/index.ts'
import { eventually } from './support/eventually.ts'

const boatResource = defineResource({
  group: 'test.oarlock.dev',
  version: 'v1',
  kind: 'Boat',
  plural: 'boats',
  scope: 'Namespaced',
  description: 'A boat.',
  spec: Type.Object({ seats: Type.Integer(), color: Type.Optional(Type.String()) }),
  status: Type.Object({ manned: Type.Optional(Type.Integer()), note: Type.Optional(Type.String()) }),
})

const dataDir = mkdtempSync(join(tmpdir(), 'oarlock-client-server-'))
let server: ApiServer
let client: Client

before(async () => {
  server = await startServer({ dataDir, listen: { port: 0 }, storage: { synchronous: 'OFF' } })
  client = await createClient({ kubeconfig: server.kubeconfigPath })
  await installKinds(client, [boatResource])
})

after(async () => {
  await client?.close()
  await server?.close()
  rmSync(dataDir, { recursive: true, force: true })
})

test('create, get, update, patch, status, apply, list and delete of a declared kind', async () => {
  const boats = client.resource(boatResource)
  const made = await boats.create({ metadata: { name: 'pinta', labels: { fleet: 'one' } }, spec: { seats: 3 } })
  deepEqual([made.kind, made.metadata.namespace, made.metadata.generation], ['Boat', 'default', 1])
  await rejects(boats.create({ metadata: { name: 'pinta' }, spec: { seats: 3 } }), { reason: 'AlreadyExists' })
  await rejects(boats.create({ metadata: { name: 'bad' }, spec: { seats: 'many' as unknown as number } }), {
    reason: 'Invalid',
    message: /spec\.seats/,
  })
  const updated = await boats.update({ ...made, spec: { seats: 4 } })
  await rejects(boats.update({ ...made, spec: { seats: 5 } }), { reason: 'Conflict' })
  equal(updated.metadata.generation, 2)
  equal((await boats.patch('pinta', { spec: { color: 'red' } }, { type: 'merge' })).spec.color, 'red')
  equal((await boats.patch('pinta', [{ op: 'remove', path: '/spec/color' }], { type: 'json' })).spec.color, undefined)
  const manned = await boats.patchStatus('pinta', { status: { manned: 2 } })
  deepEqual([manned.status?.manned, manned.metadata.generation], [2, 4])
  await rejects(boats.patchStatus('pinta', { status: { manned: 9 } }, { resourceVersion: made.metadata.resourceVersion }), {
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

test('a wrong token and a wrong CA are told apart', async () => {
  const ca = { server: server.url, caCertificate: server.caCertificate }
  const wrongToken = await createClient({ cluster: { ...ca, token: 'nonsense' } })
  await rejects(wrongToken.resource(configMapResource).list(), { code: 401 })
  const noCa = await createClient({ cluster: { server: server.url } })
  await rejects(noCa.resource(configMapResource).list(), {
    name: 'ConnectionError',
    message: /is certificate-authority in the kubeconfig correct/,
  })
  await Promise.all([wrongToken.close(), noCa.close()])
})

test('a proxy named in the kubeconfig is used', async () => {
  const asked: string[] = []
  const proxy = createProxy()
  proxy.on('connect', ({ url = '' }, socket) => {
    asked.push(url)
    const [host, port] = url.split(':')
    const target = connect(Number(port), host, () => {
      socket.write('HTTP/1.1 200 Connection established\r\n\r\n')
      target.pipe(socket).pipe(target)
    })
    for (const end of [target, socket]) end.on('error', () => [target, socket].forEach(other => void other.destroy()))
  })
  await new Promise<void>(resolve => proxy.listen(0, '127.0.0.1', resolve))
  const kubeconfig = join(dataDir, 'proxy-kubeconfig')
  const cluster = {
    server: server.url,
    'certificate-authority-data': Buffer.from(server.caCertificate).toString('base64'),
    'proxy-url': `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`,
  }
  const token = server.issueToken({ name: 'ann', groups: [adminsGroup], ttlMs: 60_000 })
  const config = {
    'current-context': 'c',
    contexts: [{ name: 'c', context: { cluster: 'c', user: 'u' } }],
    clusters: [{ name: 'c', cluster }],
    users: [{ name: 'u', user: { token } }],
  }
  writeFileSync(kubeconfig, JSON.stringify(config))
  const viaProxy = await createClient({ kubeconfig })
  ok((await viaProxy.resource(configMapResource).list()).metadata.resourceVersion)
  deepEqual(asked, [new URL(server.url).host])
  await viaProxy.close()
  await new Promise(resolve => proxy.close(resolve))
})

test('a client certificate works as PEM text, and from an exec plugin that gives a new one after each expiry', async () => {
  const user = { name: 'ann', groups: [adminsGroup], ttlMs: 60_000 }
  const ca = { server: server.url, caCertificate: server.caCertificate }
  const { certificate, key } = await issueClientCertificate(join(dataDir, 'pki'), user, Date.now())
  const direct = await createClient({ cluster: { ...ca, clientCertificate: certificate, clientKey: key } })
  ok((await direct.resource(configMapResource).list()).metadata.resourceVersion)
  await direct.close()

  const other = await issueClientCertificate(join(dataDir, 'pki'), { ...user, name: 'bob' }, Date.now())
  const plugin = join(dataDir, 'plugin.sh')
  const credential = (pair: { certificate: string; key: string }, seconds: number) =>
    JSON.stringify({
      apiVersion: 'client.authentication.k8s.io/v1',
      kind: 'ExecCredential',
      status: {
        clientCertificateData: pair.certificate,
        clientKeyData: pair.key,
        expirationTimestamp: new Date(Date.now() + seconds * 1_000).toISOString(),
      },
    })
  writeFileSync(join(dataDir, 'cert-1'), credential({ certificate, key }, 1))
  writeFileSync(join(dataDir, 'cert-2'), credential(other, 3_600))
  writeFileSync(plugin, 'cd "$(dirname "$0")"; if [ -e ran ]; then cat cert-2; else touch ran; cat cert-1; fi')
  const kubeconfig = join(dataDir, 'exec-kubeconfig')
  const exec = { apiVersion: 'client.authentication.k8s.io/v1', command: 'sh', args: [plugin], interactiveMode: 'Never' }
  const cluster = { server: server.url, 'certificate-authority-data': Buffer.from(server.caCertificate).toString('base64') }
  const config = {
    'current-context': 'c',
    contexts: [{ name: 'c', context: { cluster: 'c', user: 'u' } }],
    clusters: [{ name: 'c', cluster }],
    users: [{ name: 'u', user: { exec } }],
  }
  writeFileSync(kubeconfig, JSON.stringify(config))
  const viaPlugin = await createClient({ kubeconfig })
  const works = async () => {
    const made = await viaPlugin.resource(configMapResource).create({ metadata: { generateName: 'x-' } }, { dryRun: true })
    return made.metadata.name.startsWith('x-')
  }
  ok(await works())
  await new Promise(resolve => setTimeout(resolve, 1_050))
  ok(await works(), 'with the second certificate, over new connections')
  await viaPlugin.close()
})

test('a controller brings every boat to its status, reads its own writes, cleans up on deletion, and tells events', async () => {
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
    await eventually(isManned, 'all boats are manned', 20_000)
    await Promise.all(names.map(name => handle.patch(name, { spec: { seats: 9 } }, { type: 'merge' })))
    await eventually(() => isManned() && boats.byIndex('seats', '9').length === 60, 'all boats follow their spec', 20_000)
    equal((await client.resource(configMapResource).get('boat-3')).data?.seats, '9')
    deepEqual(stale, [], 'no reconcile saw less than the last one wrote')
    await Promise.all(names.map(name => handle.delete(name)))
    await eventually(() => boats.size === 0, 'all are gone', 20_000)
    // A change of its ConfigMap may bring a boat again before the cache knows that it is gone.
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

test('an informer is equal to the server after a restart of the server on its data', async () => {
  const secrets = client.resource(secretResource)
  const manager = new Manager({ client, log: silentLog, listWatch: { backoff: { minMs: 20, maxMs: 200 } } })
  const informer = manager.informer(secretResource, { labelSelector: 'set=a' })
  await manager.start()
  try {
    await secrets.create({ metadata: { name: 'one', labels: { set: 'a' } }, stringData: { x: '1' } })
    await secrets.create({ metadata: { name: 'other', labels: { set: 'b' } }, stringData: { x: '1' } })
    const one = await secrets.get('one')
    await eventually(() => informer.get('default/one')?.metadata.resourceVersion === one.metadata.resourceVersion, 'the cache has it')
    const { port } = server
    await server.close({ graceMs: 100 })
    server = await startServer({ dataDir, listen: { port }, storage: { synchronous: 'OFF' } })
    // A connection that broke may not be known as broken yet, and a create is not sent twice by the client.
    const two = { metadata: { name: 'two', labels: { set: 'a' } } }
    await secrets.create(two).catch(error => (error instanceof ConnectionError ? secrets.apply(two) : Promise.reject(error)))
    await secrets.patch('one', { metadata: { labels: { set: 'b' } } }, { type: 'merge' })
    await eventually(
      () =>
        informer
          .list()
          .map(({ metadata }) => metadata.name)
          .join() === 'two',
      'the cache follows',
      10_000,
    )
  } finally {
    await manager.stop()
  }
})

test('a list over the watch, pages, and pages from a server that refuses the stream fill a cache alike', async () => {
  const boats = client.resource(boatResource)
  const names = Array.from({ length: 30 }, (_, index) => `listed-${String(index).padStart(2, '0')}`)
  for (const name of names) await boats.create({ metadata: { name, labels: { set: 'listed' } }, spec: { seats: 1 } })
  const filled = async (streamLists: boolean, refuse?: () => StatusError) => {
    const asked: string[] = []
    const spy = withFaults(client, {
      filter({ path, query }) {
        if (path.endsWith('/boats')) asked.push(query?.sendInitialEvents ? 'stream' : query?.watch ? 'watch' : 'page')
        return false
      },
    })
    if (refuse) {
      spy.stream = async options => {
        if (options.query?.sendInitialEvents) throw refuse()
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
    await eventually(() => informer.get('default/listed-00')?.metadata.resourceVersion === version, 'the watch goes on')
    await manager.stop()
    deepEqual(
      added.sort(),
      names.map(name => `${name} true`),
    )
    equal(informer.size, 30)
    return asked
  }
  deepEqual(await filled(true), ['stream'])
  deepEqual(await filled(false), ['page', 'page', 'page', 'page', 'page', 'watch'])
  const refused = await filled(true, () => new StatusError('Invalid', 'sendInitialEvents is forbidden'))
  deepEqual(refused, ['page', 'page', 'page', 'page', 'page'], 'the watch goes around the spy here')
  await Promise.all(names.map(name => boats.delete(name)))
})

test('metadataOnly reads metadata under the kind’s own name, and its changes; what a reader gets is frozen', async () => {
  const handle = client.resource(configMapResource)
  const made = await handle.create({ metadata: { name: 'meta', labels: { a: 'b' } }, data: { big: 'x'.repeat(1_000) } })
  const reduced = metadataOnly(configMapResource)
  equal(metadataOnly(configMapResource), reduced)
  const partial = await client.resource(reduced).get('meta')
  deepEqual([partial.kind, partial.apiVersion, Object.keys(partial).sort()], ['ConfigMap', 'v1', ['apiVersion', 'kind', 'metadata']])
  const manager = new Manager({ client })
  const informer = manager.informer(reduced, { namespace: 'default' })
  const whole = manager.informer(configMapResource, { namespace: 'default' })
  await manager.start()
  try {
    equal(informer.get('default/meta')?.metadata.uid, made.metadata.uid)
    equal('data' in (informer.get('default/meta') ?? {}), false)
    equal(whole.get('default/meta')?.data?.big?.length, 1_000)
    await handle.patch('meta', { metadata: { labels: { a: 'c' } } }, { type: 'merge' })
    await eventually(() => informer.get('default/meta')?.metadata.labels?.a === 'c', 'the change')
    const read = whole.get('default/meta') as { data: Record<string, string> }
    throws(() => {
      read.data.big = 'mine'
    }, /read only/)
  } finally {
    await manager.stop()
  }
})

test('what manager.client writes is in the caches when the write is answered: creations, patches, deletions, and no dry runs', async () => {
  const manager = new Manager({ client })
  const boats = manager.informer(boatResource)
  const red = manager.informer(boatResource, { labelSelector: 'color=red' })
  const partial = manager.informer(metadataOnly(boatResource))
  await manager.start()
  try {
    const handle = manager.client.resource(boatResource)
    const seats = () => boats.get('default/fast')?.spec.seats
    const made = await handle.create({ metadata: { name: 'fast', labels: { color: 'red' } }, spec: { seats: 1 } })
    deepEqual([seats(), red.size, partial.get('default/fast') && 'spec' in partial.get('default/fast')!], [1, 1, false])
    throws(() => {
      made.spec.seats = 7
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
    ok(boats.get('default/fast')?.metadata.deletionTimestamp, 'it waits for its finalizer')
    const [fast] = boats.list().filter(({ metadata }) => metadata.name === 'fast')
    await removeFinalizer(manager.client, fast!, 'test.oarlock.dev/x')
    await eventually(() => boats.get('default/fast') === undefined, 'it is gone')
  } finally {
    await manager.stop()
  }
})

test('a kind that cannot be served: installKinds says what its CRD says', async () => {
  const twin = defineResource({
    group: 'test.oarlock.dev',
    version: 'v1',
    kind: 'Boat',
    plural: 'twins',
    scope: 'Namespaced',
    description: 'Another kind of the same name.',
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

test('two halves of a kind by shardSelector are all of it, with servers that know it and with those that do not', async () => {
  const handle = client.resource(configMapResource)
  const names = Array.from({ length: 20 }, (_, index) => `shard-${index}`)
  for (const name of names) await handle.create({ metadata: { name, labels: { set: 'shard' } } })
  const half = (start: string, end: string) => `shardRange(object.metadata.uid, '${start}', '${end}')`
  const halves = [half('0x0000000000000000', '0x8000000000000000'), half('0x8000000000000000', '0x10000000000000000')]
  const deaf = withFaults(client, {})
  const forget = <Options extends { query?: object }>(options: Options) => ({
    ...options,
    query: { ...options.query, shardSelector: undefined },
  })
  deaf.request = options => client.request(forget(options))
  deaf.stream = options => client.stream(forget(options))
  for (const each of [client, deaf]) {
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
