/** A CustomResourceDefinition of home is Established when every partition has it. */
import { deepEqual, equal, rejects } from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { notEstablishedIn, replication } from '../src/controllers/replication/index.ts'
import { crdResource, createClient } from '../src/kubernetes/client/index.ts'
import { Manager, silentLog } from '../src/kubernetes/controller/index.ts'
import { defineResource, type KubeObject, type Resource, Type } from '../src/kubernetes/object/index.ts'
import { startServer } from '../src/kubernetes/server/index.ts'
import { startTestServer } from '../src/kubernetes/testing/index.ts'
import { eventually } from './support/eventually.ts'

type Body = Record<string, unknown>
const boatResource = defineResource({
  ...{ group: 'harbor.example', version: 'v1', kind: 'Boat', plural: 'boats', scope: 'Cluster', description: 'A boat.' },
  spec: Type.Object({ seats: Type.Integer() }),
  status: Type.Object({}),
})

test('a definition is Established at home when the partition has reported its copy, and its kind is served then', {
  timeout: 60_000,
}, async t => {
  await using partition = await startTestServer()
  const dataDir = mkdtempSync(join(tmpdir(), 'oarlock-establish-'))
  const establishCrd = (crd: KubeObject) => notEstablishedIn(crd, ['p1'])
  const server = await startServer({ dataDir, listen: { port: 0 }, storage: { synchronous: 'OFF' }, establishCrd })
  const home = { client: await createClient({ kubeconfig: server.kubeconfigPath }) }
  t.after(async () => {
    await home.client.close()
    await server.close({ graceMs: 10 })
    rmSync(dataDir, { recursive: true, force: true })
  })
  const crds = home.client.resource(crdResource)
  const { name } = await crds.create(boatResource.toCrd()).then(({ metadata }) => metadata)
  const established = async () => (await crds.get(name)).status?.conditions?.find(({ type }) => type === 'Established')
  deepEqual([(await established())?.reason, (await established())?.message], ['NotInAllPartitions', 'not Established in partition p1 yet'])
  await rejects(home.client.resource(boatResource).list(), /not serve/)
  const manager = new Manager({ client: home.client, log: silentLog })
  for (const each of replication({ local: partition.client, partition: 'p1', kinds: [crdResource as unknown as Resource<Body>] }))
    manager.add(each)
  await manager.start()
  await eventually(async () => (await established())?.status === 'True', 'the definition to be Established')
  deepEqual((await home.client.resource(boatResource).list()).items, [])
  const copy = await partition.client.resource(crdResource).get(name)
  deepEqual(
    Object.keys(copy.metadata.annotations ?? {}).filter(key => key.startsWith('established')),
    [],
  )
  // Established stays: what is changed later does not take a kind away from its users.
  await crds.patch(name, { metadata: { annotations: { 'established.oarlock.dev/p1': '0' } } } as object, { type: 'merge' })
  equal((await established())?.status, 'True')
  await manager.stop()
})
