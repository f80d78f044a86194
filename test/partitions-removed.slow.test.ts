/** A partition that is removed: its own server does that, and clients that have seen it begin again. Each server is a process of `oarlock`. */
import { deepEqual, equal, match, rejects } from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import type { Installation } from '../examples/partitions/installation.ts'
import { nameClaimResource, partitionResource } from '../src/gateway/index.ts'
import { type Client, configMapResource, namespaceResource } from '../src/kubernetes/client/index.ts'
import { eventually } from './support/eventually.ts'
import { createTenant } from './support/gateway/create-tenant.ts'
import { Watched } from './support/gateway/watched.ts'
import { PartitionsFixture } from './support/partitions-fixture.ts'

describe('a partition that is removed', { timeout: 240_000 }, () => {
  const fixture = new PartitionsFixture()
  let installation: Installation
  let client: Client
  before(async () => {
    ;({ installation, client } = await fixture.start({ tenantPartitions: ['t1', 't2', 't3'] }))
    for (const [tenant, partition] of [
      ['acme', 't1'],
      ['umbrella', 't2'],
    ] as const) {
      await createTenant(client, tenant, partition)
      await client.resource(configMapResource).create({ metadata: { namespace: tenant, name: 'kept' } })
    }
  })
  after(() => fixture.stop())
  const partitions = () => client.resource(partitionResource)
  const configMaps = async () => {
    const { items } = await client.resource(configMapResource).listAll({ fieldSelector: 'metadata.name=kept' })
    return items.map(({ metadata }) => metadata.namespace).sort()
  }
  const versionNow = async () => (await client.resource(configMapResource).list({ limit: 1 })).metadata.resourceVersion
  const codesOf = async (watch: Watched) => {
    await watch.done
    return watch.events.map(({ object }) => (object as { code?: number }).code)
  }

  test('all partitions have known the role of one that has objects, and of another it is not recorded', async () => {
    const { items } = await partitions().listAll({})
    deepEqual(
      items.filter(({ metadata }) => metadata.name !== 'home').map(({ metadata, status }) => [metadata.name, status?.announcedRoles]),
      [
        ['t1', ['Tenants']],
        ['t2', ['Tenants']],
        ['t3', undefined],
      ],
    )
  })

  test('stays until its objects are deleted, reports what it has, gets nothing new, and then ends', async () => {
    const from = await versionNow()
    const removed = installation.run('partition', 'remove', 't2', '--data', 'home')
    await eventually(
      async () => (await partitions().get('t2')).status?.conditions?.find(({ type }) => type === 'ContentRemaining')?.message,
      'the condition',
    ).then(message => equal(message, 'delete what it has: namespaces umbrella'))
    await rejects(
      client.resource(namespaceResource).create({ metadata: { name: 'late', labels: { 'oarlock.dev/tenant': 'umbrella' } } }),
      // The second one is of home, when the gateway does not know yet.
      /belongs to partition "t2", which is being deleted|partition "t2" does not exist, or is being deleted/,
    )
    deepEqual(await configMaps(), ['acme', 'umbrella'])
    await client.resource(namespaceResource).delete('umbrella')
    match(await removed, /partition t2 was removed/)
    equal(await partitions().getOrUndefined('t2'), undefined)
    await eventually(() => !installation.role('t2').isRunning, 'the server to end', 20_000)
    match(installation.role('t2').output(), /partition "t2" was deleted/)
    await eventually(async () => (await configMaps().catch(() => [])).join() === 'acme', 'lists of the others')
    deepEqual(await codesOf(new Watched(client, `/api/v1/configmaps?watch=true&resourceVersion=${from}`)), [410])
    await rejects(
      installation.run('serve', '--partition', 't2.partition.json', '--data', 't2'),
      /that of partition "t2" .*, which was deleted/,
    )
  })

  test('is given up with its objects when it is lost: their names are free, and watches begin again', async () => {
    await installation.run('partition', 'add', 't3', '--roles', 'Tenants', '--data', 'home')
    await createTenant(client, 'initech', 't3')
    await client.resource(configMapResource).create({ metadata: { namespace: 'initech', name: 'kept' } })
    const from = await versionNow()
    await installation.role('t3').end('SIGKILL')
    match(
      await installation.run('partition', 'remove', 't3', '--lost', '--yes', '--data', 'home'),
      /partition t3 was removed; 1 names are free again/,
    )
    equal(await client.resource(nameClaimResource).getOrUndefined('initech.namespaces'), undefined)
    await eventually(async () => (await configMaps().catch(() => [])).join() === 'acme', 'lists of the others')
    deepEqual(await codesOf(new Watched(client, `/api/v1/configmaps?watch=true&resourceVersion=${from}`)), [410])
  })
})
