/** Watches that clients share at the gateway, before real servers. */
import { deepEqual, equal, match, ok, rejects } from 'node:assert/strict'
import { test } from 'node:test'
import { copyAnnotations, homeGenerationOf } from '../src/controllers/replication/index.ts'
import { Announcements, partitionResource, relistFromAnnotation } from '../src/gateway/index.ts'
import { type Client, configMapResource, createClient, installKinds, listWatch, namespaceResource } from '../src/kubernetes/client/index.ts'
import { defineResource, Type } from '../src/kubernetes/object/index.ts'
import { eventually } from './support/eventually.ts'
import { type FixtureOptions, GatewayFixture } from './support/gateway/gateway-fixture.ts'
import { Watched, type WatchedEvent } from './support/gateway/watched.ts'

/** As a Run, with what matters here. */
const runResource = defineResource({
  ...{ group: 'example.com', version: 'v1', kind: 'Run', plural: 'runs', scope: 'Namespaced', description: 'A Run.' },
  spec: Type.Object({ workerName: Type.Optional(Type.String()) }),
  status: Type.Object({}),
  selectableFields: ['.spec.workerName'],
})

async function startFixture(more: FixtureOptions = {}): Promise<GatewayFixture> {
  const fixture = await GatewayFixture.start({ home: [], t1: ['Tenants'], t2: ['Tenants'] }, {}, more)
  for (const name of fixture.servers.keys()) await installKinds(await fixture.direct(name), [runResource])
  for (const [name, tenant] of Object.entries({ a: 't1', b: 't2' }))
    await fixture.client.resource(namespaceResource).create({ metadata: { name, labels: { 'oarlock.dev/tenant': tenant } } })
  return fixture
}

async function watchersOf(fixture: GatewayFixture, partition: string): Promise<number> {
  const text = await (await (await fixture.direct(partition)).request({ method: 'GET', path: '/metrics' })).text()
  return Number(/^oarlock_apiserver_watchers (\d+)$/m.exec(text)?.[1])
}

/** A worker's view of its Runs, as `execution/worker` keeps it. */
function watchRuns(client: Client, selectors: { fieldSelector?: string; labelSelector?: string }, signal: AbortSignal) {
  const runs = new Map<string, string>()
  const events: string[] = []
  let replaced = 0
  void listWatch(client, runResource, {
    ...selectors,
    signal,
    onReplace(items) {
      replaced++
      runs.clear()
      for (const { metadata, spec } of items) runs.set(metadata.name, spec.workerName ?? '')
    },
    onEvent({ type, object: { metadata, spec } }) {
      if (type === 'BOOKMARK') return
      events.push(`${type} ${metadata.name}`)
      if (type === 'DELETED') runs.delete(metadata.name)
      else runs.set(metadata.name, spec.workerName ?? '')
    },
  })
  return { runs, events, replaced: () => replaced }
}

test('many clients of a collection cost one watch of each partition, and each gets what it selects', { timeout: 60_000 }, async t => {
  await using fixture = await startFixture()
  const abort = new AbortController()
  t.after(() => abort.abort())
  const { client } = fixture
  const runs = client.resource(runResource)
  const create = (namespace: string, name: string, workerName?: string) =>
    runs.create({
      metadata: { name, namespace, labels: { even: String(Number(name.slice(2)) % 2 === 0) } },
      spec: { ...(workerName !== undefined && { workerName }) },
    })
  await create('a', 'r-0', 'w-0')
  const before = await Promise.all(['t1', 't2'].map(name => watchersOf(fixture, name)))
  const workers = Array.from({ length: 40 }, (_, number) =>
    watchRuns(client, { fieldSelector: `spec.workerName=w-${number}` }, abort.signal),
  )
  const everyone = Array.from({ length: 10 }, () => watchRuns(client, {}, abort.signal))
  const even = Array.from({ length: 5 }, () => watchRuns(client, { labelSelector: 'even=true' }, abort.signal))
  const all = [...workers, ...everyone, ...even]
  await eventually(() => all.every(each => each.replaced() > 0), 'the existing Runs')
  deepEqual([...(workers[0]?.runs ?? [])], [['r-0', 'w-0']])
  // What each client has missed was read by a watch of its own, which ends a moment later.
  const expected = before.map(count => count + 1).join()
  const after = () => Promise.all(['t1', 't2'].map(name => watchersOf(fixture, name)))
  await eventually(after, counts => counts.join() === expected)
  for (let number = 1; number < 40; number++) await create(number % 2 ? 'a' : 'b', `r-${number}`, `w-${number}`)
  // A Run that goes to another worker leaves one selection, and enters another.
  await runs.patch('r-1', { spec: { workerName: 'w-2' } }, { namespace: 'a', type: 'merge' })
  await runs.delete('r-3', { namespace: 'a' })
  await eventually(
    () =>
      workers[1]?.events.length === 2 &&
      workers[2]?.events.length === 2 &&
      workers[3]?.events.length === 2 &&
      even.every(each => each.runs.size === 20) &&
      everyone.every(each => each.runs.size === 39),
    'the events',
  )
  deepEqual(workers[1]?.events, ['ADDED r-1', 'DELETED r-1'])
  deepEqual(workers[2]?.events, ['ADDED r-2', 'ADDED r-1'])
  deepEqual(workers[3]?.events, ['ADDED r-3', 'DELETED r-3'])
  for (const { runs: seen } of even) equal(seen.size, 20)
  deepEqual(
    all.map(each => each.replaced()),
    all.map(() => 1),
  )
})

test('a client that continues where it was gets the events since, also when the gateway has forgotten them', {
  timeout: 60_000,
}, async () => {
  await using fixture = await startFixture({ gateway: { sharedWatches: { ring: { maxEvents: 5 } } } })
  const configMaps = fixture.client.resource(configMapResource)
  const create = (namespace: string, name: string) => configMaps.create({ metadata: { name, namespace } })
  const list = (await (await fixture.client.request({ method: 'GET', path: '/api/v1/configmaps' })).json()) as {
    metadata: { resourceVersion: string }
  }
  const path = `/api/v1/configmaps?watch=true&allowWatchBookmarks=true&resourceVersion=${list.metadata.resourceVersion}`
  const first = new Watched(fixture.client, path)
  for (let number = 0; number < 20; number++) await create(number % 3 ? 'a' : 'b', `c-${number}`)
  await eventually(() => first.versions.length === 20, 'the events')
  const second = new Watched(fixture.client, path)
  const third = new Watched(fixture.client, path.replace(list.metadata.resourceVersion, String(first.versions[17])))
  await eventually(() => second.versions.length === 20 && third.versions.length === 2, 'the events again')
  await create('a', 'last')
  const counts = () => [first, second, third].map(({ versions }) => versions.length).join()
  await eventually(() => counts() === '21,21,3', 'what happens now')
  deepEqual(second.versions, first.versions)
  deepEqual(third.versions, first.versions.slice(18))
  const future = new Watched(fixture.client, path.replace(/\d+$/, String(Number(list.metadata.resourceVersion) * 2)))
  await future.done
  deepEqual(
    future.events.map(({ type, object }) => [type, (object as unknown as { code: number }).code]),
    [['ERROR', 410]],
  )
  for (const watched of [first, second, third]) await watched.stop()
})

test('a watch ends with 410 when another partition becomes a part of it, by the claim of its first object or by its role', {
  timeout: 60_000,
}, async () => {
  await using fixture = await GatewayFixture.start({ home: [], r1: ['Resources'], r2: [] })
  const partitions = (await fixture.direct('home')).resource(partitionResource)
  const node = { apiVersion: 'v1', kind: 'Node', metadata: { name: 'n1' } }
  await fixture.client.request({ method: 'POST', path: '/api/v1/nodes', body: node })
  const endsAfter = async (what: string, change: () => Promise<unknown>) => {
    const watched = new Watched(fixture.client, '/api/v1/nodes?watch=true')
    await eventually(() => watched.events.length === 1, `the Node before ${what}`)
    await change()
    await watched.done
    const { type, object } = watched.events.at(-1) as WatchedEvent
    deepEqual([type, (object as unknown as { code: number }).code], ['ERROR', 410], what)
  }
  // Until then r1 is the only part.
  await endsAfter('a claim', () => fixture.claim('nodes', 'n2', { partition: 'r2' }))
  await endsAfter('a role', () => partitions.patch('home', { spec: { roles: ['Resources'] } } as object, { type: 'merge' }))
})

test('a user who loses the right in one partition loses the shared watch, and others keep it', { timeout: 60_000 }, async () => {
  await using fixture = await startFixture({ gateway: { sharedWatches: { checkEveryMs: 200 } } })
  const rules = [{ apiGroups: [''], resources: ['configmaps'], verbs: ['watch'] }]
  const rbac = '/apis/rbac.authorization.k8s.io/v1'
  const apiVersion = 'rbac.authorization.k8s.io/v1'
  const clients = new Map<string, Client>()
  for (const name of ['home', 't1', 't2']) clients.set(name, await fixture.direct(name))
  const send = async (partition: string, method: string, path: string, body?: object) =>
    await clients.get(partition)?.request({ method, path, body: body && JSON.stringify(body) })
  for (const name of clients.keys()) {
    await send(name, 'POST', `${rbac}/clusterroles`, { apiVersion, kind: 'ClusterRole', metadata: { name: 'watcher' }, rules })
    for (const user of ['eve', 'bob']) {
      const roleRef = { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'watcher' }
      const subjects = [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: user }]
      await send(name, 'POST', `${rbac}/clusterrolebindings`, {
        apiVersion,
        kind: 'ClusterRoleBinding',
        metadata: { name: user },
        roleRef,
        subjects,
      })
    }
  }
  const cluster = { server: fixture.url, caCertificate: fixture.caCertificate }
  const path = '/api/v1/configmaps?watch=true&fieldSelector=metadata.namespace%21%3Dkube-system'
  await using clients2 = new AsyncDisposableStack()
  const [eve, bob] = await Promise.all(['eve', 'bob'].map(token => createClient({ cluster: { ...cluster, token } })))
  ok(eve && bob)
  for (const each of [eve, bob]) clients2.defer(() => each.close())
  const [lost, kept] = [new Watched(eve, path), new Watched(bob, path)]
  await eventually(() => lost.events.length > 0 && kept.events.length > 0, 'both watches')
  await new Promise(resolve => setTimeout(resolve, 600))
  equal(lost.isEnded, false)
  await send('t2', 'DELETE', `${rbac}/clusterrolebindings/eve`)
  await lost.done
  await new Watched(eve, path).done.then(
    () => ok(false, 'eve must not watch'),
    error => match(String(error), /configmaps is forbidden: User "eve" cannot watch/),
  )
  const count = kept.events.length
  await fixture.client.resource(configMapResource).create({ metadata: { name: 'later', namespace: 'b' } })
  await eventually(() => kept.events.length > count, 'what happens later')
  await kept.stop()
})

for (const [what, query] of [
  ['a shared watch', ''],
  ['a watch of its own', '&fieldSelector=metadata.name%3Dlate%2Cmetadata.namespace%3Da'],
] as const)
  test(`${what} passes nothing on while a partition knows of Partitions that the gateway has not read, and then continues`, {
    timeout: 60_000,
  }, async t => {
    await using fixture = await startFixture({ gateway: { sharedWatches: { maxWatches: query === '' ? 10 : 0 } } })
    const { client, state } = fixture
    const { metadata } = await client.resource(configMapResource).listAll({})
    const watch = new Watched(client, `/api/v1/configmaps?watch=true&resourceVersion=${metadata.resourceVersion}${query}`)
    t.after(() => watch.stop().catch(() => {}))
    const create = (name: string) => client.resource(configMapResource).create({ metadata: { namespace: 'a', name } })
    fixture.learnMap('t1', state.partitionsEpoch)
    const partitions = (await fixture.direct('home')).resource(partitionResource)
    // Known to t1 before the gateway: it is not told the next version before t1 has it.
    const next = state.partitionsEpoch + 1
    fixture.learnMap('t1', next)
    await create('late')
    await new Promise(resolve => setTimeout(resolve, 500))
    equal(watch.events.length, 0)
    await partitions.patch('t1', { metadata: { labels: { changed: 'now' } } } as object, { type: 'merge' })
    await eventually(() => watch.events.some(({ object }) => object.metadata.name === 'late'), 'the event when the gateway has read them')
    // They stay unread: the connection is closed, so that the client asks again.
    fixture.learnMap('t1', state.partitionsEpoch + 1_000_000_000)
    await create('never').catch(() => {})
    await rejects(watch.done, /aborted/)
    equal(
      watch.events.some(({ object }) => object.metadata.name === 'never'),
      false,
    )
  })

test('a watch from before the removal of a partition begins again', { timeout: 60_000 }, async t => {
  await using fixture = await startFixture()
  const { client, state } = fixture
  const { metadata } = await client.resource(configMapResource).listAll({})
  const partitions = (await fixture.direct('home')).resource(partitionResource)
  const relistFrom = String(Number(metadata.resourceVersion) + 1)
  await partitions.patch('home', { metadata: { annotations: { [relistFromAnnotation]: relistFrom } } } as object, { type: 'merge' })
  await eventually(() => state.relistFrom === Number(relistFrom), 'the gateway to read it')
  const watch = new Watched(client, `/api/v1/configmaps?watch=true&resourceVersion=${metadata.resourceVersion}`)
  t.after(() => watch.stop())
  await watch.done
  deepEqual(
    watch.events.map(({ object }) => (object as { code?: number }).code),
    [410],
  )
  const exact = `/api/v1/configmaps?resourceVersion=${metadata.resourceVersion}&resourceVersionMatch=Exact`
  await rejects(client.request({ method: 'GET', path: exact }), { code: 410 })
  await client.resource(configMapResource).list({})
})

test('a role is not used before each partition has a copy of the Partition with it', { timeout: 60_000 }, async () => {
  await using fixture = await GatewayFixture.start({ home: [], t1: ['Tenants'], t2: ['Tenants'] }, {})
  const home = await fixture.direct('home')
  const options = {
    home: 'home',
    client: home,
    connectionOf: (name: string) => fixture.connectionOf(name),
    generationOf: homeGenerationOf,
    patienceMs: 200,
  }
  const announce = () => new Announcements(options).announce('t1', 'Tenants')
  await rejects(announce(), { code: 503, message: /partition "t1" has got a role just now, and t1, t2 do not know of it yet/ })
  const copy = async (at: string, generation: number) => {
    const partitions = (await fixture.direct(at)).resource(partitionResource)
    await installKinds(await fixture.direct(at), [partitionResource])
    const annotations = { [copyAnnotations.homeVersion]: '1', [copyAnnotations.homeGeneration]: String(generation) }
    await partitions.apply({ metadata: { name: 't1', annotations }, spec: { number: 1, roles: ['Tenants'] } }, { force: true })
  }
  await copy('t1', 1)
  await rejects(announce(), { code: 503, message: /and t2 does not know of it yet/ })
  await copy('t2', 1)
  const partitions = home.resource(partitionResource)
  // Lost and given again: the copies are of a state before.
  for (const roles of [[], ['Tenants']]) await partitions.patch('t1', { spec: { roles } } as object, { type: 'merge' })
  await rejects(announce(), { code: 503, message: /and t1, t2 do not know of it yet/ })
  for (const at of ['t1', 't2']) await copy(at, 3)
  await announce()
  deepEqual((await partitions.get('t1')).status?.announcedRoles, ['Tenants'])
  await rejects(new Announcements(options).announce('t2', 'Resources'), { code: 403, message: /partition "t2": it has no role Resources/ })
})
