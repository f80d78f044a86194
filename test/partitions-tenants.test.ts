/** A Tenant and its Namespaces stay in one partition when their labels change. Each server is a process of `oarlock`. */
import { deepEqual, equal, match, rejects } from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import type { Installation } from '../examples/partitions/installation.ts'
import { tenantResource } from '../src/api/index.ts'
import { nameClaimResource, partitionResource } from '../src/gateway/index.ts'
import { type Client, createClient, namespaceResource } from '../src/kubernetes/client/index.ts'
import { findCondition, isReason } from '../src/kubernetes/object/index.ts'
import { eventually } from './support/eventually.ts'
import { isTenantUnknown } from './support/gateway/create-tenant.ts'
import { PartitionsFixture } from './support/partitions-fixture.ts'

describe('a Tenant and its Namespaces', { timeout: 180_000 }, () => {
  const fixture = new PartitionsFixture()
  let installation: Installation
  let client: Client
  before(async () => {
    ;({ installation, client } = await fixture.start({
      tenantPartitions: ['t1', 't2'],
      tenants: { acme: 't1', 'acme-labs': 't1', umbrella: 't2' },
    }))
    await client.resource(tenantResource).create({ metadata: { name: 'nowhere' }, spec: {} })
    const t1 = await createClient({ kubeconfig: installation.partitionKubeconfig('t1') })
    try {
      for (const name of ['umbrella', 'acme-labs', 'nowhere'])
        await eventually(async () => await t1.resource(tenantResource).getOrUndefined(name), `the copy of Tenant ${name} in t1`)
    } finally {
      await t1.close()
    }
  })
  after(() => fixture.stop())
  const failure = (sent: Promise<unknown>) =>
    sent.then(
      () => 'no error',
      error => String(error),
    )
  const labelTenant = (name: string, partition: string | null) =>
    client
      .resource(tenantResource)
      .patch(name, { metadata: { labels: { 'oarlock.dev/partition': partition } } } as object, { type: 'merge' })
  const labelNamespace = (name: string, tenant: string | null) =>
    client.resource(namespaceResource).patch(name, { metadata: { labels: { 'oarlock.dev/tenant': tenant } } } as object, { type: 'merge' })

  test('a Tenant with Namespaces keeps its partition', async () => {
    const why = /the Tenant has namespaces in partition "t1" \(acme\); delete them first, or create another Tenant/
    const changed = await failure(labelTenant('acme', 't2'))
    match(changed, /label oarlock.dev\/partition cannot change from "t1" to "t2"/)
    match(changed, why)
    match(await failure(labelTenant('acme', null)), /label oarlock.dev\/partition cannot change from "t1" to none: /)
    await client.resource(tenantResource).delete('acme')
    const again = (partition: string) =>
      client.resource(tenantResource).create({ metadata: { name: 'acme', labels: { 'oarlock.dev/partition': partition } }, spec: {} })
    match(await failure(again('t2')), why)
    await again('t1')
  })

  test('a Tenant without Namespaces gets another partition', async () => {
    const name = 'movable'
    await client.resource(tenantResource).create({ metadata: { name, labels: { 'oarlock.dev/partition': 't1' } }, spec: {} })
    await labelTenant(name, 't2')
    const namespace = { metadata: { name, labels: { 'oarlock.dev/tenant': name } } }
    // The gateway may not know of the move yet: home rejects its claim. Nor of the Tenant itself.
    const create = () => client.resource(namespaceResource).create(namespace)
    await eventually(
      () => create().catch(error => (isReason(error, 'ServiceUnavailable') || isTenantUnknown(error) ? undefined : Promise.reject(error))),
      'the namespace',
    )
    const t2 = await createClient({ kubeconfig: installation.partitionKubeconfig('t2') })
    try {
      equal((await t2.resource(namespaceResource).get(name)).metadata.labels?.['oarlock.dev/tenant'], name)
    } finally {
      await t2.close()
    }
  })

  test('a partition rejects a new Namespace whose Tenant is in another one as misdirected', async () => {
    const t1 = await createClient({ kubeconfig: installation.partitionKubeconfig('t1') })
    try {
      const namespace = { metadata: { name: 'misplaced', labels: { 'oarlock.dev/tenant': 'umbrella' } } }
      await rejects(t1.resource(namespaceResource).create(namespace), {
        code: 421,
        message:
          'namespace "misplaced" belongs to partition "t2", which has its Tenant "umbrella", and this one is "t1": create it through the gateway',
      })
    } finally {
      await t1.close()
    }
  })

  test('a Tenant does not move while a Namespace is created for it, and a claim for its former partition is rejected', async () => {
    const home = await createClient({ kubeconfig: installation.partitionKubeconfig('home') })
    try {
      const claim = (name: string) =>
        home
          .resource(nameClaimResource)
          .create({ metadata: { name: `${name}.namespaces` }, spec: { resource: 'namespaces', name, partition: 't1', tenant: name } })
      const names = Array.from({ length: 40 }, (_, index) => `race-${index}`)
      const tenants = home.resource(tenantResource)
      for (const name of names) await tenants.create({ metadata: { name, labels: { 'oarlock.dev/partition': 't1' } }, spec: {} })
      const change = { metadata: { labels: { 'oarlock.dev/partition': 't2' } } } as object
      // Each first in half of the cases, in one commit where that is possible.
      const moves = names.map((name, index) => {
        const writes = [() => claim(name), () => tenants.patch(name, change, { type: 'merge' })]
        return Promise.allSettled((index % 2 ? writes.reverse() : writes).map(write => write()))
      })
      const both = (await Promise.all(moves)).filter(results => results.every(({ status }) => status === 'fulfilled'))
      equal(both.length, 0)
      await tenants.create({ metadata: { name: 'moved-before', labels: { 'oarlock.dev/partition': 't2' } }, spec: {} })
      match(await failure(claim('moved-before')), /Tenant "moved-before" is in partition "t2" now, and not in "t1"; retry/)
    } finally {
      await home.close()
    }
  })

  test('the Tenant of a Namespace is not removed, and changes within its partition only', async () => {
    match(
      await failure(labelNamespace('acme', null)),
      /label oarlock.dev\/tenant cannot change from "acme" to none: the namespace is in partition "t1" for its Tenant; set it to another Tenant/,
    )
    match(
      await failure(labelNamespace('acme', 'umbrella')),
      /label oarlock.dev\/tenant cannot change from "acme" to "umbrella": that Tenant is in partition "t2", and the namespace is in "t1"; choose a Tenant/,
    )
    match(await failure(labelNamespace('acme', 'missing')), /"missing": that Tenant does not exist/)
    match(await failure(labelNamespace('acme', 'nowhere')), /"nowhere": that Tenant is in no partition/)
  })

  test('a Namespace whose Tenant has changed keeps the new one in its partition', async () => {
    await client.resource(namespaceResource).create({ metadata: { name: 'moved', labels: { 'oarlock.dev/tenant': 'acme' } } })
    await labelNamespace('moved', 'acme-labs')
    const claim = async () => (await client.resource(nameClaimResource).get('moved.namespaces')).spec
    await eventually(async () => (await claim()).tenant === 'acme-labs', 'the claim to follow the label')
    match(await failure(labelTenant('acme-labs', 't2')), /has namespaces in partition "t1" \(acme-labs, moved\)/)
    await client.resource(namespaceResource).delete('moved')
    equal((await claim()).tenant, 'acme-labs')
  })

  test('a Tenant of no partition for Tenants is not Ready, until there is one', async () => {
    const any = ['--listen', '127.0.0.1:0', '--health-address', '127.0.0.1:0']
    const own = ['--kubeconfig', installation.partitionKubeconfig('home'), '--workers-kubeconfig', installation.kubeconfig]
    const controller = installation.add('controller-home', [
      'controller',
      ...own,
      '--partition',
      'home',
      '--data',
      'controller-home',
      ...any,
    ])
    await controller.until(/^ready: /m)
    const create = (name: string, partition: string) =>
      client.resource(tenantResource).create({ metadata: { name, labels: { 'oarlock.dev/partition': partition } }, spec: {} })
    const ready = async (name: string) => findCondition((await client.resource(tenantResource).get(name)).status?.conditions, 'Ready')
    await create('lost', 't9')
    const lost = await eventually(async () => await ready('lost'), 'the condition')
    deepEqual(
      [lost.status, lost.reason, lost.message],
      [
        'False',
        'NoSuchPartition',
        'label oarlock.dev/partition names partition "t9", which does not exist; partitions for Tenants are t1, t2',
      ],
    )
    await create('roleless', 'home')
    const roleless = await eventually(async () => await ready('roleless'), 'the condition')
    match(String(roleless.message), /names partition "home", which does not have the role Tenants/)
    await labelTenant('lost', 't2')
    await eventually(async () => (await ready('lost'))?.status === 'True', 'the Tenant to be Ready')
    const home = await createClient({ kubeconfig: installation.partitionKubeconfig('home') })
    try {
      await home.resource(partitionResource).patch('home', { spec: { roles: ['Tenants'] } } as object, { type: 'merge' })
      await eventually(async () => (await ready('roleless'))?.status === 'True', 'the Tenant to be Ready', 20_000)
    } finally {
      await home.close()
    }
  })
})
