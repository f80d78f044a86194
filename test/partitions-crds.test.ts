/** CustomResourceDefinitions over partitions that are processes, as users start them. */
import { deepEqual, equal } from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import type { Installation } from '../examples/partitions/installation.ts'
import { type Client, crdResource } from '../src/kubernetes/client/index.ts'
import { defineResource, Type } from '../src/kubernetes/object/index.ts'
import { eventually } from './support/eventually.ts'
import { PartitionsFixture } from './support/partitions-fixture.ts'

type Schema = { type?: string; properties?: Record<string, Schema> }

const kindOf = (plural: string) =>
  defineResource({
    ...{ group: 'harbor.example', version: 'v1', kind: plural.replace(/^./, c => c.toUpperCase()).slice(0, -1), plural, scope: 'Cluster' },
    description: 'Of this test.',
    spec: Type.Object({ seats: Type.Integer() }),
    status: Type.Object({}),
  })

describe('a CRD that is created through the gateway', { timeout: 180_000 }, () => {
  const fixture = new PartitionsFixture()
  let installation: Installation
  let client: Client
  before(async () => {
    ;({ installation, client } = await fixture.start({ tenantPartitions: ['t1'], resourcePartitions: ['r1'] }))
  })
  after(() => fixture.stop())
  const established = async (plural: string) => {
    const { metadata, status } = await client.resource(crdResource).get(`${plural}.harbor.example`)
    return { ...status?.conditions?.find(({ type }) => type === 'Established'), annotations: metadata.annotations ?? {} }
  }

  test('is Established and served when every partition has it', async () => {
    const boats = kindOf('boats')
    await client.resource(crdResource).create(boats.toCrd())
    await eventually(async () => (await established('boats')).status === 'True', 'the definition to be Established')
    const { annotations } = await established('boats')
    deepEqual([annotations['established.oarlock.dev/t1'], annotations['established.oarlock.dev/r1']], ['1', '1'])
    await client.resource(boats).create({ metadata: { name: 'a' }, spec: { seats: 2 } })
    equal((await client.resource(boats).listAll({})).items.length, 1)
  })

  test('a change is in every partition when it is answered', async () => {
    const boats = kindOf('boats')
    for (let change = 1; change <= 5; change++) {
      const { spec } = structuredClone(boats.toCrd()) as unknown as { spec: { versions: { schema: { openAPIV3Schema: Schema } }[] } }
      const properties = spec.versions[0]?.schema.openAPIV3Schema.properties?.spec?.properties ?? {}
      properties[`added${change}`] = { type: 'string' }
      await client.resource(crdResource).patch('boats.harbor.example', { spec } as object, { type: 'merge' })
      const { metadata } = await client.resource(crdResource).get('boats.harbor.example')
      const annotations = metadata.annotations ?? {}
      const generation = String(metadata.generation)
      deepEqual([annotations['established.oarlock.dev/t1'], annotations['established.oarlock.dev/r1']], [generation, generation])
    }
  })

  test('waits for a partition that is down, by its name, until it is back or is no partition any more', async () => {
    const r1 = installation.role('r1')
    await r1.end('SIGKILL')
    await client.resource(crdResource).create(kindOf('rafts').toCrd())
    await eventually(
      () => established('rafts'),
      each => each.message === 'not Established in partition r1 yet',
    )
    equal((await established('rafts')).reason, 'NotInAllPartitions')
    r1.restart()
    await eventually(async () => (await established('rafts')).status === 'True', 'the definition to be Established', 60_000)

    await r1.end('SIGKILL')
    await client.resource(crdResource).create(kindOf('buoys').toCrd())
    await eventually(async () => (await established('buoys')).message === 'not Established in partition r1 yet', 'the condition to name r1')
    await installation.run('partition', 'remove', 'r1', '--lost', '--yes', '--data', 'home')
    await eventually(async () => (await established('buoys')).status === 'True', 'the definition to be Established')
  })
})
