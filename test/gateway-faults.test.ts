/** Watches over several partitions while a partition is away. */
import { deepEqual, equal, ok } from 'node:assert/strict'
import { test } from 'node:test'
import { configMapResource, namespaceResource } from '../src/kubernetes/client/index.ts'
import { eventually } from './support/eventually.ts'
import { GatewayFixture } from './support/gateway/gateway-fixture.ts'
import { Watched } from './support/gateway/watched.ts'

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
