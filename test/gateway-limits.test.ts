/** Clients of the gateway that ask too much, or do not read. */
import { deepEqual, equal, match, ok } from 'node:assert/strict'
import { once } from 'node:events'
import { test } from 'node:test'
import { connect, type TLSSocket } from 'node:tls'
import { Registry } from 'prom-client'
import { Agent, fetch } from 'undici'
import { configMapResource, namespaceResource } from '../src/kubernetes/client/index.ts'
import { eventually } from './support/eventually.ts'
import { type FixtureOptions, GatewayFixture } from './support/gateway/gateway-fixture.ts'
import { Watched } from './support/gateway/watched.ts'

async function startFixture(more: FixtureOptions): Promise<GatewayFixture> {
  const fixture = await GatewayFixture.start({ home: [], t1: ['Tenants'], t2: ['Tenants'] }, {}, more)
  for (const [name, tenant] of Object.entries({ a: 't1', b: 't2' }))
    await fixture.client.resource(namespaceResource).create({ metadata: { name, labels: { 'oarlock.dev/tenant': tenant } } })
  return fixture
}

/** A request for a watch on a connection that is never read. */
async function openUnread(fixture: GatewayFixture, path: string): Promise<TLSSocket> {
  const { hostname, port } = new URL(fixture.url)
  const socket = connect({ host: hostname, port: Number(port), ca: fixture.caCertificate })
  await once(socket, 'secureConnect')
  socket.on('error', () => {})
  socket.write(`GET ${path} HTTP/1.1\r\nHost: ${hostname}:${port}\r\nAuthorization: Bearer admin\r\n\r\n`)
  return socket
}

test('a client that does not read is disconnected, holds no other, and can continue', { timeout: 60_000 }, async t => {
  const registry = new Registry()
  await using fixture = await startFixture({ gateway: { maxWatchBufferBytes: 512 * 1024, registry } })
  const configMaps = fixture.client.resource(configMapResource)
  const list = (await (await fixture.client.request({ method: 'GET', path: '/api/v1/configmaps' })).json()) as {
    metadata: { resourceVersion: string }
  }
  const path = `/api/v1/configmaps?watch=true&resourceVersion=${list.metadata.resourceVersion}`
  const reader = new Watched(fixture.client, path)
  const slow = await openUnread(fixture, path)
  t.after(() => slow.destroy())
  const ended = once(slow, 'close')
  let isEnded = false
  void ended.then(() => {
    isEnded = true
  })
  await eventually(async () => /client_watches\{mode="shared"\} 2/.test(await registry.metrics()), 'both watches')
  const text = 'x'.repeat(50_000)
  const latenciesMs: number[] = []
  const slowClients = async () => Number(/^oarlock_gateway_slow_clients_total (\d+)/m.exec(await registry.metrics())?.[1])
  let count = 0
  while ((await slowClients()) === 0) {
    ok(++count < 2_000, 'the client that does not read must be disconnected')
    const startMs = performance.now()
    await configMaps.create({ metadata: { name: `c-${count}`, namespace: count % 2 ? 'a' : 'b' }, data: { text } })
    await eventually(() => reader.versions.length === count, 'the other one to have the event')
    latenciesMs.push(performance.now() - startMs)
  }
  // Reading what is in the buffers of the kernel shows the end of the connection.
  let received = ''
  slow.on('data', chunk => (received += String(chunk)))
  await eventually(() => isEnded, 'the end of the connection')
  const seen = [...received.matchAll(/"name":"c-(\d+)"[^\n]*?"resourceVersion":"(\d+)"/g)]
  ok(seen.length > 0 && seen.length < count, `${seen.length} of ${count} events`)
  deepEqual(
    seen.map(([, number]) => Number(number)),
    seen.map((_, index) => index + 1),
  )
  const last = seen.at(-1)?.[2] ?? ''
  const again = new Watched(fixture.client, path.replace(list.metadata.resourceVersion, last))
  await eventually(() => again.versions.length === count - seen.length, 'the events that it has not read')
  latenciesMs.sort((x, y) => x - y)
  t.diagnostic(`${count} events; write to event of the reader: p50 ${latenciesMs[count >> 1]?.toFixed(1)} ms`)
  await Promise.all([reader.stop(), again.stop()])
})

test('a Tenant and a user with too much in progress get 429 with the reason; others, and other requests, go on', {
  timeout: 60_000,
}, async t => {
  const registry = new Registry()
  const limits = { watchesPerTenant: 2, watchesPerUser: 3 }
  await using fixture = await startFixture({ gateway: { limits, registry } })
  const rbac = '/apis/rbac.authorization.k8s.io/v1'
  const apiVersion = 'rbac.authorization.k8s.io/v1'
  for (const name of ['home', 't1', 't2']) {
    const direct = await fixture.direct(name)
    for (const user of ['eve', 'bob'])
      await direct.request({
        ...{ method: 'POST', path: `${rbac}/clusterrolebindings` },
        body: JSON.stringify({
          ...{ apiVersion, kind: 'ClusterRoleBinding', metadata: { name: user } },
          roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'view' },
          subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: user }],
        }),
      })
  }
  const agent = new Agent({ connect: { ca: fixture.caCertificate } })
  t.after(() => agent.destroy())
  const aborts: AbortController[] = []
  // The garbage collector closes a response that nothing refers to.
  const responses: unknown[] = []
  const get = async (user: string, path: string) => {
    const abort = new AbortController()
    aborts.push(abort)
    const headers = { authorization: `Bearer ${user}` }
    const response = await fetch(fixture.url + path, { dispatcher: agent, headers, signal: abort.signal })
    responses.push(response)
    return response
  }
  const watchA = '/api/v1/namespaces/a/configmaps?watch=true'
  equal((await get('eve', watchA)).status, 200)
  equal((await get('bob', watchA)).status, 200)
  const tooMany = await get('bob', watchA)
  equal(tooMany.status, 429)
  equal(tooMany.headers.get('retry-after'), '1')
  match(
    ((await tooMany.json()) as { message: string }).message,
    /^Tenant "t1" has 2 watches open, as many as this gateway allows: retry later$/,
  )
  equal((await get('bob', '/api/v1/namespaces/a/configmaps')).status, 200)
  const watchB = watchA.replace('/a/', '/b/')
  equal((await get('bob', watchB)).status, 200)
  equal((await get('bob', '/api/v1/configmaps?watch=true')).status, 200)
  const ofUser = await get('bob', '/api/v1/configmaps?watch=true')
  equal(ofUser.status, 429)
  match(((await ofUser.json()) as { message: string }).message, /^user "bob" has 3 watches open/)
  // An administrator is exempt.
  equal((await get('admin', watchA)).status, 200)
  await eventually(async () => /client_watches\{mode="shared"\} 1/.test(await registry.metrics()), 'the watch to be shared')
  const text = await registry.metrics()
  for (const line of [
    'oarlock_gateway_tenant_watches{tenant="t1"} 3',
    'oarlock_gateway_tenant_watches{tenant="t2"} 1',
    'oarlock_gateway_rejected_requests_total 2',
    'oarlock_gateway_client_watches{mode="forwarded"} 4',
    'oarlock_gateway_client_watches{mode="shared"} 1',
    'oarlock_gateway_upstream_watches{partition="t1",class="namespaced"} 4',
    'oarlock_gateway_shared_watches 1',
    'oarlock_gateway_partition_up{partition="t2"} 1',
    'oarlock_gateway_requests_total{verb="watch",code="429",partition=""} 2',
    'oarlock_gateway_requests_total{verb="list",code="200",partition="t1"} 1',
  ])
    ok(
      text.split('\n').includes(line),
      `${line}\n${text
        .split('\n')
        .filter(each => each.startsWith(line.split('{')[0] ?? ''))
        .join('\n')}`,
    )
  for (const abort of aborts) abort.abort()
  await eventually(async () => !/tenant_watches\{/.test(await registry.metrics()), 'the watches to have ended')
  equal((await get('bob', watchA)).status, 200)
  aborts.at(-1)?.abort()
  await fixture.servers.get('t2')?.close({ graceMs: 10 })
  match(await registry.metrics(), /partition_up\{partition="t2"\} 0/)
})

test('watches of one namespace are passed through, and from the fifth one on they are shared', { timeout: 60_000 }, async () => {
  const registry = new Registry()
  await using fixture = await startFixture({ gateway: { registry } })
  const watches = Array.from({ length: 4 }, () => new Watched(fixture.client, '/api/v1/namespaces/a/configmaps?watch=true'))
  await eventually(async () => /client_watches\{mode="forwarded"\} 4/.test(await registry.metrics()), 'the first watches')
  const more = ['', '&labelSelector=app%3Dx', '&fieldSelector=metadata.name%3Dc-1'].map(
    selector => new Watched(fixture.client, `/api/v1/namespaces/a/configmaps?watch=true${selector}`),
  )
  await eventually(async () => /client_watches\{mode="shared"\} 3/.test(await registry.metrics()), 'the other watches')
  match(await registry.metrics(), /upstream_watches\{partition="t1",class="namespaced"\} 5/)
  const configMaps = fixture.client.resource(configMapResource)
  for (const [name, app] of Object.entries({ 'c-1': 'x', 'c-2': 'x', 'c-3': 'y' }))
    await configMaps.create({ metadata: { name, namespace: 'a', labels: { app } } })
  const names = (watched: Watched) => watched.events.map(({ object }) => object.metadata.name).filter(name => name.startsWith('c-'))
  const expected = [['c-1', 'c-2', 'c-3'], ['c-1', 'c-2'], ['c-1']]
  await eventually(() => JSON.stringify(more.map(names)) === JSON.stringify(expected), 'the events')
  await eventually(() => watches.every(each => names(each).length === 3), 'the events of the others')
  for (const watched of [...watches, ...more]) await watched.stop()
})

test('requests that clients end early, or send slowly, use up nothing of a user or Tenant', { timeout: 60_000 }, async t => {
  await using fixture = await startFixture({ gateway: { limits: { requestsPerUser: 3, requestsPerTenant: 1 } } })
  const agent = new Agent({ connect: { ca: fixture.caCertificate } })
  t.after(() => agent.destroy())
  const send = async (user: string, path: string, more: RequestInit & { duplex?: 'half' } = {}) => {
    const headers = { authorization: `Bearer ${user}`, 'content-type': 'application/json' }
    const response = await fetch(fixture.url + path, { dispatcher: agent, headers, ...more } as never)
    await response.arrayBuffer()
    return response.status
  }
  // A kind that is not known waits for the next discovery of home, which is at most once a second.
  for (let round = 0; round < 3; round++)
    await Promise.all(
      [1, 2].map(number =>
        send('ann', `/apis/none${round}.example/v1/x${number}`, { signal: AbortSignal.timeout(100) }).catch(() => undefined),
      ),
    )
  equal(await send('ann', '/api/v1/namespaces/a/configmaps'), 403)
  const abort = new AbortController()
  const body = () => new ReadableStream({ start: controller => controller.enqueue(Buffer.from('{')) })
  const slow = [1, 2].map(() =>
    send('eve', '/api/v1/namespaces/a/configmaps', { method: 'POST', body: body(), duplex: 'half', signal: abort.signal }).catch(
      () => undefined,
    ),
  )
  await new Promise(resolve => setTimeout(resolve, 300))
  equal(await send('admin+x', '/api/v1/namespaces/a/configmaps'), 200)
  equal(await send('bob', '/api/v1/namespaces/a/configmaps'), 403)
  abort.abort()
  await Promise.all(slow)
})
