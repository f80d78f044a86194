import { deepEqual, equal } from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { eventually } from '../../../test/support/eventually.ts'
import { labels, workersNamespace } from '../../api/index.ts'
import { type PartitionRole, partitionResource } from '../../gateway/index.ts'
import { namespaceResource, secretResource } from '../../kubernetes/client/index.ts'
import { Manager, silentLog } from '../../kubernetes/controller/index.ts'
import { startTestServer } from '../../kubernetes/testing/index.ts'
import { isNewCredential, issuedAtAnnotation, workerCredentialName, workerCredentialType } from '../join/index.ts'
import { credentialCopies } from './credential-copies.ts'

async function start(t: TestContext, roles: PartitionRole[]) {
  const [home, partition] = [await startTestServer(), await startTestServer({ kinds: [partitionResource] })]
  for (const { client } of [home, partition]) await client.resource(namespaceResource).create({ metadata: { name: workersNamespace } })
  await partition.client.resource(partitionResource).create({ metadata: { name: 'r1' }, spec: { number: 1, roles } })
  const manager = new Manager({ client: home.client, log: silentLog })
  manager.add(credentialCopies(partition.client, 'r1'))
  t.after(async () => {
    await manager.stop({ graceMs: 100 })
    await home.close()
    await partition.close()
  })
  await manager.start()
  const namespace = workersNamespace
  const records = home.client.resource(secretResource)
  const issue = async (worker: string) =>
    await records.create({
      metadata: { namespace, name: workerCredentialName(worker), labels: { [labels.pool]: 'edge' }, annotations: { a: 'b' } },
      type: workerCredentialType,
      stringData: { worker },
    })
  const copies = partition.client.resource(secretResource)
  const copyOf = async (worker: string) => await copies.getOrUndefined(workerCredentialName(worker), { namespace })
  return { records, copies, namespace, issue, copyOf }
}

test('a resource partition has what home records of a credential, without its data, until home deletes it', async t => {
  const { records, copies, namespace, issue, copyOf } = await start(t, ['Resources'])
  const record = await issue('w1')
  const copy = await eventually(() => copyOf('w1'), 'the copy')
  deepEqual([copy.type, copy.data, copy.metadata.labels], [workerCredentialType, undefined, { [labels.pool]: 'edge' }])
  const { annotations } = copy.metadata
  equal(annotations?.a, 'b')
  // Not when it was copied: a copy made later would let a worker register again.
  equal(annotations?.[issuedAtAnnotation], record.metadata.creationTimestamp)
  const issuedAtMs = Date.parse(record.metadata.creationTimestamp)
  deepEqual([isNewCredential(copy, issuedAtMs + 100_000), isNewCredential(copy, issuedAtMs + 130_000)], [true, false])

  await records.patch(record.metadata.name, { metadata: { annotations: { c: 'd' } } }, { type: 'merge', namespace })
  await eventually(async () => (await copyOf('w1'))?.metadata.annotations?.c === 'd', 'the change')
  // What the partition has recorded stays.
  await copies.patch(record.metadata.name, { metadata: { annotations: { own: 'x' } } }, { type: 'merge', namespace })
  await records.patch(record.metadata.name, { metadata: { annotations: { c: 'e' } } }, { type: 'merge', namespace })
  const changed = await eventually(copyOf.bind(undefined, 'w1'), found => found?.metadata.annotations?.c === 'e')
  equal(changed?.metadata.annotations?.own, 'x')

  await records.delete(record.metadata.name, { namespace })
  await eventually(async () => (await copyOf('w1')) === undefined, 'the end of the copy')
})

test('a partition without the role has no copies, and other Secrets are not copied', async t => {
  const tenants = await start(t, ['Tenants'])
  await tenants.issue('w1')
  const resources = await start(t, ['Resources'])
  const { namespace } = resources
  await resources.records.create({ metadata: { namespace, name: 'other' }, stringData: { a: 'b' } })
  await resources.issue('w1')
  await eventually(() => resources.copyOf('w1'), 'a copy')
  equal(await resources.copies.getOrUndefined('other', { namespace }), undefined)
  equal(await tenants.copyOf('w1'), undefined)
})
