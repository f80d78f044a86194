/** Garbage collection over partitions that are processes: owners in other partitions, as an operator with cluster-scoped resources has them. */
import { deepEqual, equal } from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import type { Installation } from '../examples/partitions/installation.ts'
import { tenantResource } from '../src/api/index.ts'
import { type Client, configMapResource, crdResource, createClient, namespaceResource } from '../src/kubernetes/client/index.ts'
import { defineResource, describeResource, type KubeObject, Type } from '../src/kubernetes/object/index.ts'
import { eventually } from './support/eventually.ts'
import { createTenant } from './support/gateway/create-tenant.ts'
import { PartitionsFixture } from './support/partitions-fixture.ts'

const issuers = defineResource({
  ...{ group: 'certs.example', version: 'v1', kind: 'Issuer', plural: 'issuers', scope: 'Cluster' },
  description: 'Of this test.',
  spec: Type.Object({}),
  status: Type.Object({}),
})
const nodes = describeResource({ group: '', version: 'v1', kind: 'Node', plural: 'nodes', scope: 'Cluster' })
const csiNodes = describeResource({ group: 'storage.k8s.io', version: 'v1', kind: 'CSINode', plural: 'csinodes', scope: 'Cluster' })

const ownedBy = ({ apiVersion, kind, metadata: { name, uid } }: KubeObject<unknown>) => [
  { apiVersion: apiVersion ?? '', kind: kind ?? '', name, uid },
]

describe('an object whose owner is in another partition', { timeout: 240_000 }, () => {
  const fixture = new PartitionsFixture()
  let installation: Installation
  let client: Client
  before(async () => {
    ;({ installation, client } = await fixture.start({ tenantPartitions: ['t1'], resourcePartitions: ['r1'] }))
    await createTenant(client, 'acme', 't1')
    await client.resource(crdResource).create(issuers.toCrd())
    await eventually(async () => {
      const { status } = await client.resource(crdResource).get('issuers.certs.example')
      return status?.conditions?.some(({ type, status }) => type === 'Established' && status === 'True')
    }, 'the definition to be Established')
  })
  after(() => fixture.stop())
  const make = async (name: string, owner: KubeObject<unknown>) =>
    await client.resource(configMapResource).create({ metadata: { namespace: 'acme', name, ownerReferences: ownedBy(owner) } })
  const existing = async () => {
    const { items } = await client.resource(configMapResource).list({ namespace: 'acme' })
    return items
      .map(({ metadata }) => metadata.name)
      .filter(name => name.startsWith('of-'))
      .sort()
  }

  test('is kept while the owner exists, and deleted with it', async () => {
    const issuer = await client.resource(issuers).create({ metadata: { name: 'ca' }, spec: {} })
    const kept = await client.resource(issuers).create({ metadata: { name: 'kept' }, spec: {} })
    const node = await client.resource(nodes).create({ metadata: { name: 'n1' } })
    const owners = {
      issuer,
      kept,
      tenant: await client.resource(tenantResource).get('acme'),
      node,
      namespace: await client.resource(namespaceResource).get('kube-system'),
    }
    for (const [name, owner] of Object.entries(owners)) await make(`of-${name}`, owner as KubeObject<unknown>)
    // At home, of a Node in r1.
    await client.resource(csiNodes).create({ metadata: { name: 'n1', ownerReferences: ownedBy(node) }, spec: { drivers: [] } } as never)
    await make('of-absent', {
      ...issuer,
      metadata: { ...issuer.metadata, uid: '11111111-2222-4333-8444-555555555555' },
    } as KubeObject<unknown>)
    // Its name is wrong: that concerns no other object.
    await make('of-wrong', { ...issuer, metadata: { ...issuer.metadata, name: 'wrong' } } as KubeObject<unknown>)
    // That its owner does not exist is known after at most 30 s; the others have been asked for by then.
    const areDeleted = async () => (await existing()).every(name => name !== 'of-absent' && name !== 'of-wrong')
    await eventually(areDeleted, 'the deletion of what has no owner', 60_000)
    const all = Object.keys(owners).map(name => `of-${name}`)
    deepEqual(await existing(), all.sort())
    equal((await client.resource(csiNodes).get('n1')).metadata.name, 'n1')

    await client.resource(issuers).delete('ca')
    await eventually(async () => !(await existing()).includes('of-issuer'), 'the deletion with the owner', 60_000)
    deepEqual(
      await existing(),
      all.filter(name => name !== 'of-issuer'),
    )
  })

  test('is kept while home does not answer', async () => {
    const home = installation.role('home')
    const t1 = await createClient({ kubeconfig: installation.partitionKubeconfig('t1') })
    try {
      await home.end('SIGKILL')
      const log = join(installation.directory, 't1', 'oarlock.log')
      const isAsked = () => /cannot find out whether \w+ \S+, which owns objects here, exists/.test(readFileSync(log, 'utf8')) || undefined
      await eventually(isAsked, 'a question that home does not answer', 60_000)
      const { items } = await t1.resource(configMapResource).list({ namespace: 'acme' })
      equal(items.filter(({ metadata }) => metadata.name.startsWith('of-')).length, 4)
    } finally {
      await t1.close()
      home.restart()
    }
  })
})
