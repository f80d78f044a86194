/** The gateway before three real embedded servers: routing, merged lists and merged watches. */
import { deepEqual, equal, match, ok, rejects } from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { Agent, fetch } from 'undici'
import { nameClaimResource, partitionResource, RoutingState } from '../src/gateway/index.ts'
import { type Client, configMapResource, crdResource, listWatch, namespaceResource } from '../src/kubernetes/client/index.ts'
import { laterRevision } from '../src/kubernetes/util/index.ts'
import { eventually } from './support/eventually.ts'
import { GatewayFixture } from './support/gateway/gateway-fixture.ts'
import type { PartitionServer } from './support/gateway/partition-process.ts'
import { startProxy } from './support/proxy.ts'

let fixture: GatewayFixture
let client: Client

before(async () => {
  fixture = await GatewayFixture.start({ home: [], t1: ['Tenants'], t2: ['Tenants'] })
  client = fixture.client
  for (const [name, tenant] of Object.entries({ a: 't1', b: 't2' }))
    await client.resource(namespaceResource).create({ metadata: { name, labels: { 'oarlock.dev/tenant': tenant } } })
})
after(async () => {
  await fixture?.[Symbol.asyncDispose]()
})

const configMaps = () => client.resource(configMapResource)
const create = (namespace: string, name: string) => configMaps().create({ metadata: { name, namespace }, data: { name } })
const get = async (path: string) => (await (await client.request({ method: 'GET', path })).json()) as Record<string, unknown>
const namesIn = (list: { items: { metadata: { namespace?: string; name: string } }[] }) =>
  list.items.map(({ metadata: { namespace, name } }) => `${namespace ?? ''}/${name}`).filter(name => !name.includes('kube-root-ca'))

describe('a gateway before three partitions', () => {
  test('objects are in the partition of their namespace, and only there', async () => {
    await create('a', 'one')
    await create('b', 'two')
    equal((await configMaps().get('one', { namespace: 'a' })).data?.name, 'one')
    const direct = await fixture.direct('t1')
    deepEqual(namesIn(await direct.resource(configMapResource).listAll({ namespace: 'a' })), ['a/one'])
    equal(await direct.resource(configMapResource).getOrUndefined('two', { namespace: 'b' }), undefined)
    equal(fixture.state.tenantOf('a'), 't1')
    equal(fixture.state.tenantOf('default'), undefined)
    await rejects(create('c', 'x'), /namespaces "c" not found/)
    await rejects(
      client.resource(namespaceResource).create({ metadata: { name: 'd' } }),
      /label oarlock.dev\/tenant is not set, and you may create namespaces of several Tenants \(t1, t2\)/,
    )
    await rejects(
      client.resource(namespaceResource).create({ metadata: { name: 'a', labels: { 'oarlock.dev/tenant': 't2' } } }),
      /"a" already exists/,
    )
  })

  test('a list of all namespaces has the objects of all partitions, and system namespaces from home only', async () => {
    const list = (await get('/api/v1/configmaps')) as never as { items: never[]; metadata: { resourceVersion: string } }
    deepEqual(namesIn(list).sort(), ['a/one', 'b/two'])
    const namespaces = (await get('/api/v1/namespaces')) as never as { items: never[] }
    deepEqual(namesIn(namespaces).sort(), ['/a', '/b', '/default', '/kube-node-lease', '/kube-public', '/kube-system', '/oarlock-system'])
    // The newest one of what was written through any gateway, or past it.
    const direct = await fixture.direct('t2')
    const written = await direct.resource(configMapResource).create({ metadata: { name: 'direct', namespace: 'b' } })
    const newer = (await get('/api/v1/configmaps')) as never as typeof list
    ok(namesIn(newer).includes('b/direct'))
    ok(Number(newer.metadata.resourceVersion) >= Number(written.metadata.resourceVersion))
    // A version of half a minute later raises no clock.
    const future = laterRevision(Number(newer.metadata.resourceVersion), 30_000)
    await rejects(get(`/api/v1/configmaps?resourceVersion=${future}&resourceVersionMatch=NotOlderThan`), /Too large resource version/)
    const watched = await client.stream({ method: 'GET', path: `/api/v1/configmaps?watch=true&resourceVersion=${future}` })
    let first = ''
    for await (const chunk of watched.body) first += Buffer.from(chunk).toString()
    match(first, /"code":410/)
    const unchanged = (await get('/api/v1/configmaps')) as never as typeof list
    ok(Number(unchanged.metadata.resourceVersion) < future)
    // An earlier version is exactly as it was.
    const exact = await get(`/api/v1/configmaps?resourceVersion=${list.metadata.resourceVersion}&resourceVersionMatch=Exact`)
    deepEqual(namesIn(exact as never).sort(), ['a/one', 'b/two'])
  })

  test('a client that accepts compressed answers gets a merged list of any size', async () => {
    const text = 'x'.repeat(100_000)
    for (const namespace of ['a', 'b'])
      for (const name of ['large-1', 'large-2'])
        await configMaps().create({ metadata: { name, namespace, labels: { size: 'large' } }, data: { text } })
    const agent = new Agent({ connect: { ca: fixture.caCertificate } })
    try {
      const headers = { authorization: 'Bearer admin', 'accept-encoding': 'gzip' }
      const response = await fetch(`${fixture.url}/api/v1/configmaps?labelSelector=size%3Dlarge`, { dispatcher: agent, headers })
      equal(response.status, 200)
      deepEqual(namesIn((await response.json()) as never).sort(), ['a/large-1', 'a/large-2', 'b/large-1', 'b/large-2'])
    } finally {
      await agent.close()
      for (const namespace of ['a', 'b']) for (const name of ['large-1', 'large-2']) await configMaps().delete(name, { namespace })
    }
  })

  test('a kind whose CRD was created a moment ago is served immediately, in its scope', async () => {
    const crds = client.resource(crdResource)
    for (const [plural, scope] of Object.entries({ boats: 'Namespaced', harbors: 'Cluster' })) {
      await rejects(get(`/apis/sea.example/v1/${plural}`), /does not serve this resource/)
      const schema = { openAPIV3Schema: { type: 'object' } }
      const spec = {
        ...{
          group: 'sea.example',
          scope,
          names: { plural, singular: plural.slice(0, -1), kind: plural.slice(0, -1).replace(/^./, c => c.toUpperCase()) },
        },
        versions: [{ name: 'v1', served: true, storage: true, schema }],
      }
      // As replication copies it.
      for (const name of ['t1', 't2'])
        await (await fixture.direct(name)).resource(crdResource).create({ metadata: { name: `${plural}.sea.example` }, spec } as never)
      await crds.create({ metadata: { name: `${plural}.sea.example` }, spec } as never)
      const { items } = (await get(`/apis/sea.example/v1/${plural}`)) as { items: unknown[] }
      deepEqual(items, [])
    }
    const path = '/apis/sea.example/v1/namespaces/b/boats'
    const boat = { apiVersion: 'sea.example/v1', kind: 'Boat', metadata: { name: 'one' } }
    await client.request({ method: 'POST', path, headers: { 'content-type': 'application/json' }, body: JSON.stringify(boat) })
    deepEqual(namesIn((await get('/apis/sea.example/v1/boats')) as never), ['b/one'])
  })

  test('a review is answered by the partition of the namespace that it is about', async () => {
    const send = async (path: string, body: object, token = 'admin') => {
      const dispatcher = new Agent({ connect: { ca: fixture.caCertificate } })
      const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
      const response = await fetch(`${fixture.url}${path}`, { dispatcher, method: 'POST', headers, body: JSON.stringify(body) })
      const answer = (await response.json()) as { status: { allowed?: boolean; authenticated?: boolean; token?: string } }
      await dispatcher.close()
      return answer.status
    }
    const rbac = { apiVersion: 'rbac.authorization.k8s.io/v1', metadata: { name: 'reader', namespace: 'b' } }
    const path = '/apis/rbac.authorization.k8s.io/v1/namespaces/b'
    await send(`${path}/roles`, { ...rbac, kind: 'Role', rules: [{ apiGroups: [''], resources: ['configmaps'], verbs: ['get'] }] })
    const roleRef = { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: 'reader' }
    await send(`${path}/rolebindings`, {
      ...rbac,
      kind: 'RoleBinding',
      roleRef,
      subjects: [{ kind: 'User', name: 'bob', apiGroup: roleRef.apiGroup }],
    })
    const may = async (namespace: string, kind: 'SelfSubjectAccessReview' | 'SubjectAccessReview') => {
      const [more, token] = kind === 'SelfSubjectAccessReview' ? [{}, 'bob+system:authenticated'] : [{ user: 'bob' }, 'admin']
      const spec = { ...more, resourceAttributes: { namespace, verb: 'get', resource: 'configmaps' } }
      const reviews = `/apis/authorization.k8s.io/v1/${kind.toLowerCase()}s`
      return (await send(reviews, { apiVersion: 'authorization.k8s.io/v1', kind, spec }, token)).allowed
    }
    for (const kind of ['SelfSubjectAccessReview', 'SubjectAccessReview'] as const)
      deepEqual(
        [await may('b', kind), await may('a', kind), await may('nowhere', kind), await may('default', kind)],
        [true, false, false, false],
      )
    const accounts = '/api/v1/namespaces/b/serviceaccounts'
    await send(accounts, { metadata: { name: 'robot' } })
    const { token } = await send(`${accounts}/robot/token`, { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec: {} })
    const review = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenReview', spec: { token } }
    equal((await send('/apis/authentication.k8s.io/v1/tokenreviews', review)).authenticated, true)
  })

  test('the version needs no credential, everything else does', async () => {
    const dispatcher = new Agent({ connect: { ca: fixture.caCertificate } })
    const ask = async (path: string, method = 'GET') => await fetch(`${fixture.url}${path}`, { dispatcher, method })
    const version = await ask('/version')
    equal(version.status, 200)
    match(await version.text(), /"gitVersion"/)
    for (const [path, method] of [
      ['/version', 'POST'],
      ['/version/x', 'GET'],
      ['/api', 'GET'],
      ['/api/v1/namespaces/a/configmaps', 'OPTIONS'],
    ] as const)
      equal((await ask(path, method)).status, 401, `${method} ${path}`)
    await dispatcher.close()
  })

  test('a Namespace with generateName gets a name, which is claimed', async () => {
    const created = await client
      .resource(namespaceResource)
      .create({ metadata: { generateName: 'made-', labels: { 'oarlock.dev/tenant': 't2' } } } as never)
    const { name } = created.metadata
    match(name, /^made-[a-z0-9]{5}$/)
    equal(fixture.state.partitionOf('namespaces', name), 't2')
    await client.resource(namespaceResource).delete(name)
  })

  test('pages go through the partitions, at one version', async () => {
    const all = namesIn((await get('/api/v1/configmaps')) as never).sort()
    const seen: string[] = []
    let token = ''
    let pages = 0
    const versions = new Set<string>()
    do {
      const page = (await get(`/api/v1/configmaps?limit=1${token && `&continue=${token}`}`)) as never as {
        items: never[]
        metadata: { resourceVersion: string; continue?: string }
      }
      ok(page.items.length <= 1)
      seen.push(...namesIn(page))
      versions.add(page.metadata.resourceVersion)
      token = page.metadata.continue ?? ''
      if (++pages === 1) await create('a', 'later')
    } while (token)
    deepEqual(seen.sort(), all)
    equal(versions.size, 1)
    await rejects(
      get(`/api/v1/secrets?limit=1&continue=${Buffer.from('{"t":"{}","s":""}').toString('base64url')}`),
      /invalid continue token/,
    )
  })

  test('a watch of all namespaces has every event once, in the order of versions', async () => {
    const abort = new AbortController()
    const { metadata } = (await get('/api/v1/configmaps')) as never as { metadata: { resourceVersion: string } }
    const path = `/api/v1/configmaps?watch=true&allowWatchBookmarks=true&resourceVersion=${metadata.resourceVersion}`
    const { body } = await client.stream({ method: 'GET', path, signal: abort.signal, idleTimeoutMs: 0 })
    const expected = Array.from({ length: 60 }, (_, number) => `w-${number}`)
    const writes = Promise.all(expected.map((name, number) => create(number % 2 ? 'a' : 'b', name)))
    const events: { type: string; object: { metadata: { name: string; resourceVersion: string } } }[] = []
    let rest = ''
    for await (const chunk of body) {
      rest += Buffer.from(chunk).toString()
      const lines = rest.split('\n')
      rest = lines.pop() ?? ''
      for (const line of lines) events.push(JSON.parse(line))
      if (events.filter(({ type }) => type === 'ADDED').length === expected.length) break
    }
    abort.abort()
    await writes
    const versions = events.map(({ object }) => Number(object.metadata.resourceVersion))
    deepEqual(
      versions,
      [...versions].sort((x, y) => x - y),
    )
    deepEqual(events.map(({ object }) => object.metadata.name).sort(), [...expected].sort())
  })

  test('an informer, with WatchList, has what all partitions have', async () => {
    const abort = new AbortController()
    const path = '/api/v1/namespaces?watch=true&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan'
    const { body } = await client.stream({ method: 'GET', path, signal: abort.signal, idleTimeoutMs: 0 })
    const names: string[] = []
    let text = ''
    for await (const chunk of body) {
      text += Buffer.from(chunk).toString()
      if (text.includes('initial-events-end')) break
    }
    abort.abort()
    for (const line of text.trim().split('\n')) {
      const { type, object } = JSON.parse(line) as { type: string; object: { metadata: { name: string } } }
      if (type === 'ADDED') names.push(object.metadata.name)
    }
    deepEqual(names.sort(), ['a', 'b', 'default', 'kube-node-lease', 'kube-public', 'kube-system', 'oarlock-system'])
    match(text.trim().split('\n').at(-1) ?? '', /"type":"BOOKMARK".*"k8s.io\/initial-events-end":"true"/)
  })

  test('a user has the rights that they have in the partition', async t => {
    const agent = new Agent({ connect: { ca: fixture.caCertificate } })
    t.after(() => agent.destroy())
    const response = await fetch(`${fixture.url}/api/v1/configmaps`, {
      dispatcher: agent,
      headers: { authorization: 'Bearer eve', 'x-remote-user': 'admin', 'x-remote-group': 'system:masters' },
    })
    equal(response.status, 403)
    match(((await response.json()) as { message: string }).message, /configmaps is forbidden: User "eve" cannot list/)
    equal((await fetch(`${fixture.url}/api/v1/configmaps`, { dispatcher: agent })).status, 401)
  })

  test('a namespace whose name cannot be one is not found', async () => {
    for (const name of ['a%2Fb', 'a%25b', '..%2Fa'])
      await rejects(get(`/api/v1/namespaces/${name}/configmaps`), { code: 404, message: /namespaces ".*" not found/ })
  })

  test('with an outdated map a request is retried once with a new one, and executed once', async () => {
    fixture.outdated.set('namespaces a', 't2')
    await create('a', 'misdirected')
    equal(fixture.refreshes, 1)
    const claims = (await fixture.direct('home')).resource(nameClaimResource)
    await claims.create({ metadata: { name: 'nowhere.namespaces' }, spec: { resource: 'namespaces', name: 'nowhere', partition: 't2' } })
    await eventually(() => fixture.state.partitionOf('namespaces', 'nowhere') === 't2', 'the claim to be seen')
    await rejects(
      client.request({ method: 'GET', path: '/api/v1/namespaces/nowhere/configmaps', timeoutMs: 500 }),
      /timed out|does not have what the routing map says/,
    )
  })

  test('watches continue when a partition has another address, and nothing is logged', async () => {
    const server = fixture.servers.get('t1') as PartitionServer
    const proxy = await startProxy(server.port)
    const abort = new AbortController()
    const seen: string[] = []
    try {
      for (const path of ['/api/v1/configmaps', '/api/v1/namespaces/a/configmaps'])
        void listWatch(client, configMapResource, {
          ...{ signal: abort.signal, backoff: { minMs: 20, maxMs: 100 }, ...(path.includes('/a/') && { namespace: 'a' }) },
          onReplace: () => seen.push(`${path} list`),
          onEvent: ({ type, object }) => type === 'ADDED' && seen.push(`${path} ${object.metadata.name}`),
        })
      await eventually(() => seen.filter(each => each.endsWith('list')).length >= 2, 'both watches')
      const before = fixture.logs.length
      await fixture.movePartition('t1', { url: `https://127.0.0.1:${proxy.port}`, caCertificate: server.caCertificate })
      await create('a', 'after-the-move')
      await eventually(() => new Set(seen.filter(each => each.endsWith('after-the-move'))).size === 2, 'the event in both watches', 20_000)
      deepEqual(fixture.logs.slice(before), [])
    } finally {
      abort.abort()
      await fixture.movePartition('t1', server)
      proxy.close()
    }
  })

  test('a namespace whose claim is there and which its partition does not have is not found', async t => {
    t.after(() => fixture.mapEpochs.clear())
    const claims = (await fixture.direct('home')).resource(nameClaimResource)
    await claims.create({ metadata: { name: 'deleted.namespaces' }, spec: { resource: 'namespaces', name: 'deleted', partition: 't2' } })
    await eventually(() => fixture.state.partitionOf('namespaces', 'deleted') === 't2', 'the claim to be seen')
    fixture.mapEpochs.set('t2', fixture.state.partitionsEpoch)
    for (const path of ['configmaps', 'configmaps/a', 'configmaps?watch=true', 'pods/p/log'])
      await rejects(get(`/api/v1/namespaces/deleted/${path}`), { code: 404, message: /namespaces "deleted" not found/ })
    await rejects(create('deleted', 'late'), { code: 404, message: /namespaces "deleted" not found/ })
  })

  test('a map is read again until its Partitions are those of a partition that rejects a request, or 2 s have passed', async () => {
    const partitions = (await fixture.direct('home')).resource(partitionResource)
    const { metadata } = await partitions.patch('t1', { metadata: { labels: { changed: 'now' } } } as object, { type: 'merge' })
    const epoch = Number(metadata.resourceVersion)
    const fromMs = performance.now()
    await fixture.state.refresh('a', epoch)
    ok(performance.now() - fromMs < 1_900, 'its watch has the change')
    await fixture.state.refresh('a', epoch + 1)
    ok(performance.now() - fromMs >= 2_000, 'no such change is known')
  })

  for (const [what, pathAfter] of [
    ['a list at an exact version', ({ version }) => `/api/v1/configmaps?resourceVersion=${version}&resourceVersionMatch=Exact`],
    ['a later page of a list', ({ token }) => `/api/v1/configmaps?limit=1&continue=${token}`],
  ] as readonly (readonly [string, (first: { version: string; token: string }) => string])[])
    test(`${what} is not answered either, although the gateway has heard nothing of the Partitions since the list before`, async t => {
      t.after(async () => {
        fixture.mapEpochs.clear()
        // A change of Partitions that is newer than all that the connections of the gateway remember.
        const partitions = (await fixture.direct('home')).resource(partitionResource)
        await eventually(async () => {
          await partitions.patch('t1', { metadata: { labels: { changed: `${performance.now()}` } } } as object, { type: 'merge' })
          return await get('/api/v1/configmaps').catch(() => undefined)
        }, 'lists to be answered again')
      })
      await get('/api/v1/configmaps')
      const first = (await get('/api/v1/configmaps?limit=1')) as { metadata: { resourceVersion: string; continue: string } }
      const path = pathAfter({ version: first.metadata.resourceVersion, token: first.metadata.continue })
      for (const name of ['home', 't1', 't2']) fixture.mapEpochs.set(name, fixture.state.partitionsEpoch + 1_000_000)
      const agent = new Agent({ connect: { ca: fixture.caCertificate } })
      t.after(() => agent.destroy())
      // Without the retries of a client.
      const response = await fetch(`${fixture.url}${path}`, { dispatcher: agent, headers: { authorization: 'Bearer admin' } })
      equal(response.status, 503, path)
      match(((await response.json()) as { message: string }).message, /partitions were added or changed since/)
    })

  test('a list is not answered while another partition knows of Partitions that the gateway has not read: it could lack their objects', async t => {
    t.after(() => fixture.mapEpochs.clear())
    fixture.mapEpochs.set('t2', fixture.state.partitionsEpoch)
    await get('/api/v1/configmaps')
    fixture.mapEpochs.set('t2', fixture.state.partitionsEpoch + 1_000_000)
    const agent = new Agent({ connect: { ca: fixture.caCertificate } })
    t.after(() => agent.destroy())
    // Without the retries of a client.
    const rejected = async (path: string) => {
      const response = await fetch(`${fixture.url}${path}`, { dispatcher: agent, headers: { authorization: 'Bearer admin' } })
      equal(response.status, 503, path)
      match(((await response.json()) as { message: string }).message, /home "home" does not answer, and partitions were added or changed/)
    }
    await rejected('/api/v1/configmaps')
    await rejected('/api/v1/configmaps?limit=1')
    const watchList = 'watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true'
    await rejected(`/api/v1/configmaps?${watchList}`)
    await get('/api/v1/namespaces/a/configmaps')
    // Home is back: its newest Partition is later than what t2 knew.
    const partitions = (await fixture.direct('home')).resource(partitionResource)
    await partitions.patch('t1', { metadata: { labels: { changed: 'later' } } } as object, { type: 'merge' })
    await get('/api/v1/configmaps')
  })

  test('a user without the right to create leaves no claim, and an apply creates what no partition has', async t => {
    const agent = new Agent({ connect: { ca: fixture.caCertificate } })
    t.after(() => agent.destroy())
    const apply = async (user: string, name: string, labels: object) =>
      await fetch(`${fixture.url}/api/v1/namespaces/${name}?fieldManager=test`, {
        ...{ dispatcher: agent, method: 'PATCH' },
        headers: { authorization: `Bearer ${user}`, 'content-type': 'application/apply-patch+yaml' },
        body: JSON.stringify({ apiVersion: 'v1', kind: 'Namespace', metadata: { name, labels } }),
      })
    const labels = { 'oarlock.dev/tenant': 't2' }
    equal((await apply('eve', 'taken', labels)).status, 403)
    equal(fixture.state.partitionOf('namespaces', 'taken'), undefined)
    equal((await apply('admin', 'taken', { ...labels, 'not valid': 'x' })).status, 422)
    equal(fixture.state.partitionOf('namespaces', 'taken'), undefined)
    equal((await apply('admin', 'taken', labels)).status, 201)
    equal((await apply('admin', 'taken', { ...labels, more: 'x' })).status, 200)
    equal((await (await fixture.direct('t2')).resource(namespaceResource).get('taken')).metadata.labels?.more, 'x')
    equal(await (await fixture.direct('t1')).resource(namespaceResource).getOrUndefined('taken'), undefined)
  })

  test('a name is claimed once, whichever gateway asks first', async () => {
    const home = await fixture.direct('home')
    const second = new RoutingState('home', home, { onPartitions: () => {}, log: () => {} })
    await second.start()
    const claims = await Promise.allSettled([
      fixture.claim('nodes', 'n-1', { partition: 't1' }),
      fixture.claim('nodes', 'n-1', { partition: 't2' }, second),
    ])
    deepEqual(claims.map(({ status }) => status).sort(), ['fulfilled', 'rejected'])
    const owner = fixture.state.partitionOf('nodes', 'n-1')
    equal(second.partitionOf('nodes', 'n-1'), owner)
    // The one that has it may claim it again: a gateway that ended before the creation.
    await fixture.claim('nodes', 'n-1', { partition: String(owner) }, second)
    second.close()
  })

  test('with a partition down, what needs it fails with its name, and the rest continues', async () => {
    await fixture.servers.get('t2')?.close({ graceMs: 10 })
    await rejects(
      client.request({ method: 'GET', path: '/api/v1/configmaps', timeoutMs: 3_000 }).then(response => response.text()),
      /partition "t2" does not answer|timed out/,
    )
    equal((await configMaps().get('one', { namespace: 'a' })).data?.name, 'one')
    // Only who asks for it gets a part of a list, and learns that it is one.
    const response = await client.request({ method: 'GET', path: '/api/v1/configmaps?allowPartial=true' })
    match(String(response.headers.warning), /^299 - "this list is incomplete: partitions t2 do not answer, and their objects are missing"$/)
    const part = namesIn((await response.json()) as never)
    equal(part.includes('a/one') && !part.includes('b/two'), true, String(part))
    const page = await client.request({ method: 'GET', path: '/api/v1/configmaps?allowPartial=true&limit=1' })
    const { metadata } = (await page.json()) as { metadata: { continue: string } }
    const continued = `limit=1&continue=${encodeURIComponent(metadata.continue)}`
    await rejects(
      client.request({ method: 'GET', path: `/api/v1/configmaps?${continued}`, timeoutMs: 3_000 }),
      /does not answer|continue|timed out/i,
    )
    ok((await client.request({ method: 'GET', path: `/api/v1/configmaps?allowPartial=true&${continued}` })).headers.warning)
  })
})
