import { deepEqual, equal } from 'node:assert/strict'
import { test } from 'node:test'
import { eventually } from '../../../test/support/eventually.ts'
import { crdResource } from '../../kubernetes/client/index.ts'
import { Manager, silentLog } from '../../kubernetes/controller/index.ts'
import { defineResource, describeResource, type KubeObject, type Resource, Type } from '../../kubernetes/object/index.ts'
import { startTestServer } from '../../kubernetes/testing/index.ts'
import { decideCopy, decideReport, notEstablishedIn } from './decide-copy.ts'
import { enqueueCopies, replication } from './replication.ts'

type Body = Record<string, unknown>
const boatResource = defineResource({
  ...{ group: 'harbor.example', version: 'v1', kind: 'Boat', plural: 'boats', scope: 'Cluster', description: 'A boat.' },
  spec: Type.Object({ seats: Type.Integer() }),
  status: Type.Object({}),
})
const roleResource = describeResource<Body>({
  ...{ group: 'rbac.authorization.k8s.io', version: 'v1', kind: 'ClusterRole', plural: 'clusterroles', scope: 'Cluster' },
})
const kinds = [crdResource, roleResource, boatResource] as unknown as readonly Resource<Body>[]

test('CRDs, roles and objects of new kinds are copied, changed and deleted, also after a restart', { timeout: 60_000 }, async () => {
  await using home = await startTestServer({ kinds: [boatResource] })
  await using partition = await startTestServer()
  const options = { local: partition.client, kinds }
  const start = async () => {
    const manager = new Manager({ client: home.client, log: silentLog })
    const controllers = replication(options)
    for (const each of controllers) manager.add(each)
    await manager.start()
    return { manager, controllers }
  }
  const boats = home.client.resource(boatResource)
  const copies = partition.client.resource(boatResource)
  const roles = home.client.resource(roleResource)
  await boats.create({ metadata: { name: 'a', labels: { color: 'red' } }, spec: { seats: 2 } })
  await roles.create({ metadata: { name: 'crew' }, rules: [{ apiGroups: [''], resources: ['pods'], verbs: ['get'] }] } as never)
  const first = await start()
  const copyOf = async (name: string) => await copies.getOrUndefined(name).catch(() => undefined)
  const copied = await eventually(() => copyOf('a'), 'the copy of a new kind')
  deepEqual([copied.metadata.labels, copied.spec], [{ color: 'red' }, { seats: 2 }])
  await eventually(async () => (await partition.client.resource(roleResource).getOrUndefined('crew')) !== undefined, 'the role')
  await boats.patch('a', { spec: { seats: 3 }, metadata: { labels: { color: null } } } as object, { type: 'merge' })
  await eventually(
    async () => (await copyOf('a'))?.spec.seats === 3 && (await copyOf('a'))?.metadata.labels?.color === undefined,
    'the change',
  )
  await first.manager.stop()

  // While nothing replicates: one is deleted at home, and someone creates one here that home does not have.
  await boats.delete('a')
  await copies.create({ metadata: { name: 'local' }, spec: { seats: 1 } })
  const second = await start()
  await enqueueCopies(options, second.controllers)
  await eventually(async () => (await copyOf('a')) === undefined, 'the copy to be gone')
  equal((await copyOf('local'))?.spec.seats, 1)
  await second.manager.stop()
})

test('the copy of an object that was created again with other immutable fields is replaced; another object of its name is not', async () => {
  await using home = await startTestServer()
  await using partition = await startTestServer()
  const classes = describeResource<Body & { value: number }>({
    ...{ group: 'scheduling.k8s.io', version: 'v1', kind: 'PriorityClass', plural: 'priorityclasses', scope: 'Cluster' },
  })
  const at = (client: typeof home.client) => client.resource(classes)
  const create = async (client: typeof home.client, name: string, value: number) =>
    await at(client).create({ metadata: { name }, value } as never)
  const valueOfCopy = async (name: string) => (await at(partition.client).getOrUndefined(name))?.value
  const start = async () => {
    const manager = new Manager({ client: home.client, log: silentLog })
    for (const each of replication({ local: partition.client, kinds: [classes] as unknown as readonly Resource<Body>[] })) manager.add(each)
    await manager.start()
    return manager
  }
  await create(home.client, 'high', 1)
  const first = await start()
  await eventually(async () => (await valueOfCopy('high')) === 1, 'the copy')
  await first.stop()
  await at(home.client).delete('high')
  await create(home.client, 'high', 2)
  await create(partition.client, 'own', 1)
  await create(home.client, 'own', 2)
  const second = await start()
  await eventually(async () => (await valueOfCopy('high')) === 2, 'the new copy')
  await second.stop()
  equal(await valueOfCopy('own'), 1)
})

test('what every server creates for itself is not copied, and a copy of this version needs nothing', () => {
  const object = (metadata: object) => ({
    apiVersion: 'v1',
    kind: 'X',
    metadata: { name: 'a', uid: 'u', resourceVersion: '7', ...metadata },
  })
  const decide = (source?: object, copy?: object) =>
    decideCopy(source as KubeObject<Body> | undefined, copy as KubeObject<Body> | undefined).kind
  equal(decide(object({ labels: { 'kubernetes.io/bootstrapping': 'rbac-defaults' } })), 'none')
  const copy = object({ annotations: { 'oarlock.dev/home-resource-version': '7' } })
  equal(decide(object({}), copy), 'none')
  equal(decide(object({ resourceVersion: '8' }), copy), 'apply')
  equal(decide(undefined, copy), 'delete')
  equal(decide(object({ deletionTimestamp: '2026-11-27T06:00:00Z' }), copy), 'delete')
  equal(decide(undefined, object({})), 'none')
})

test('a partition reports the generation that is Established there', () => {
  const source = (annotations = {}) => ({
    apiVersion: 'v1',
    kind: 'X',
    metadata: { name: 'a', uid: 'u', resourceVersion: '7', generation: 3, annotations },
  })
  const copy = (status: string) => ({ ...source(), status: { conditions: [{ type: 'Established', status }] } })
  const key = 'established.oarlock.dev/p1'
  const decide = (annotations: object, status: string) => decideReport(source(annotations) as never, copy(status) as never, 'p1')
  deepEqual(decide({}, 'False'), { kind: 'wait' })
  deepEqual(decide({ [key]: '2' }, 'True'), { kind: 'report', annotations: { [key]: '3' } })
  deepEqual(decide({ [key]: '3' }, 'True'), { kind: 'none' })
  const missing = (annotations: object) => notEstablishedIn(source(annotations) as never, ['p1', 'p2'])
  equal(missing({}), 'not Established in partitions p1, p2 yet')
  equal(missing({ [key]: '3', 'established.oarlock.dev/p2': '2' }), 'not Established in partition p2 yet')
  equal(missing({ [key]: '3', 'established.oarlock.dev/p2': '4' }), undefined)
})
