import { deepEqual, equal, ok } from 'node:assert/strict'
import { test } from 'node:test'
import { isDeepStrictEqual } from 'node:util'
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
  status: Type.Object({ here: Type.Optional(Type.String()), home: Type.Optional(Type.String()) }),
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

test('a field that home removes is removed from the copy, whose status is its own, and the status of home changes no copy', async () => {
  await using home = await startTestServer({ kinds: [boatResource] })
  await using partition = await startTestServer({ kinds: [boatResource] })
  const manager = new Manager({ client: home.client, log: silentLog })
  for (const each of replication({ local: partition.client, kinds })) manager.add(each)
  await manager.start()
  const [roles, rolesHere] = [home.client.resource(roleResource), partition.client.resource(roleResource)]
  const [boats, copies] = [home.client.resource(boatResource), partition.client.resource(boatResource)]
  const rule = (resource: string) => ({ apiGroups: [''], resources: [resource], verbs: ['get'] })
  const aggregated = { clusterRoleSelectors: [{ matchLabels: { crew: 'yes' } }] }
  // Of this partition only, before home has one.
  await rolesHere.create({
    metadata: { name: 'crew', labels: { here: 'yes' } },
    aggregationRule: aggregated,
    rules: [rule('secrets')],
  } as never)
  await roles.create({ metadata: { name: 'crew', annotations: { a: '1' } }, rules: [rule('pods')] } as never)
  const crewHere = async () => {
    const { metadata, rules, aggregationRule } = (await rolesHere.get('crew')) as KubeObject<Body>
    const { 'oarlock.dev/home-resource-version': home, ...annotations } = metadata.annotations ?? {}
    return {
      labels: metadata.labels ?? {},
      annotations,
      rules: rules ?? [],
      ...(aggregationRule !== undefined && { aggregationRule }),
      isCopy: !!home,
    }
  }
  const isCrew = (expected: object) => async () => isDeepStrictEqual(await crewHere(), expected)
  await eventually(isCrew({ labels: {}, annotations: { a: '1' }, rules: [rule('pods')], isCopy: true }), 'the role of home')
  await roles.patch('crew', { metadata: { annotations: null }, rules: [] } as object, { type: 'merge' })
  await eventually(isCrew({ labels: {}, annotations: {}, rules: [], isCopy: true }), 'what was removed')

  await boats.create({ metadata: { name: 'a' }, spec: { seats: 2 } })
  const copy = await eventually(() => copies.getOrUndefined('a'), 'the copy')
  await copies.patchStatus('a', { status: { here: 'yes' } })
  await boats.patchStatus('a', { status: { home: 'yes' } })
  await boats.patch('a', { metadata: { labels: { color: 'red' } } } as object, { type: 'merge' })
  const changed = await eventually(async () => {
    const now = await copies.get('a')
    return now.metadata.labels ? now : undefined
  }, 'the change')
  deepEqual([changed.status, changed.metadata.uid], [{ here: 'yes' }, copy.metadata.uid])
  await manager.stop()
})

test('the default roles of home replace those of a partition', async () => {
  await using home = await startTestServer()
  await using partition = await startTestServer()
  const [there, here] = [home.client.resource(roleResource), partition.client.resource(roleResource)]
  const defaults = (await here.listAll({})).items.filter(({ metadata }) => metadata.labels?.['kubernetes.io/bootstrapping'] !== undefined)
  ok(defaults.length > 10, `${defaults.length}`)
  await there.patch('view', { metadata: { annotations: { 'rbac.authorization.kubernetes.io/autoupdate': 'false' } } } as object, {
    type: 'merge',
  })
  await there.patch('system:discovery', { rules: [] } as object, { type: 'merge' })
  const manager = new Manager({ client: home.client, log: silentLog })
  for (const each of replication({ local: partition.client, kinds: [roleResource] })) manager.add(each)
  await manager.start()
  const hereIs = async (name: string) => (await here.get(name)) as KubeObject<Body>
  await eventually(async () => (((await hereIs('system:discovery')).rules ?? []) as object[]).length === 0, 'the change of a default role')
  await eventually(
    async () => (await hereIs('view')).metadata.annotations?.['rbac.authorization.kubernetes.io/autoupdate'] === 'false',
    'its annotation',
  )
  await manager.stop()
})

test('a copy is written if its labels, annotations or content differ from those at home', () => {
  const object = (metadata: object, more = {}) => ({
    apiVersion: 'v1',
    kind: 'X',
    metadata: { name: 'a', uid: 'u', resourceVersion: '7', ...metadata },
    ...more,
  })
  const decide = (source?: object, copy?: object) =>
    decideCopy(source as KubeObject<Body> | undefined, copy as KubeObject<Body> | undefined).kind
  equal(decide(object({})), 'create')
  equal(decide(object({}), object({})), 'update', 'it is no copy yet')
  const annotations = { 'oarlock.dev/home-resource-version': '7' }
  const copy = object({ annotations, uid: 'v', resourceVersion: '3' }, { spec: { a: 1 }, status: { here: 1 } })
  equal(decide(object({ resourceVersion: '8' }, { spec: { a: 1 }, status: { there: 1 } }), copy), 'none')
  equal(decide(object({ annotations: { 'established.oarlock.dev/p1': '1' } }, { spec: { a: 1 } }), copy), 'none')
  equal(decide(object({}, { spec: { a: 2 } }), copy), 'update')
  equal(decide(object({}), copy), 'update')
  equal(decide(object({ labels: { b: 'c' } }, { spec: { a: 1 } }), copy), 'update')
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
