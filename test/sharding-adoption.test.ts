import { deepEqual, equal, match } from 'node:assert/strict'
import { after, before, beforeEach, test } from 'node:test'
import { Registry } from 'prom-client'
import { configMapResource, namespaceResource, secretResource } from '../src/kubernetes/client/index.ts'
import { bucketLabel, bucketOf, controller, type Log, labelOwnedObjects, Manager, silentLog } from '../src/kubernetes/controller/index.ts'
import { controllerReference, defineResource, type KubeObject, type Resource, Type } from '../src/kubernetes/object/index.ts'
import { startTestServer, type TestServer, VirtualTimers } from '../src/kubernetes/testing/index.ts'
import { eventually } from './support/eventually.ts'

const kind = (name: string, plural: string) =>
  defineResource({
    ...{ group: 'adopted.example', version: 'v1', kind: name, plural, scope: 'Namespaced', description: name },
    spec: Type.Object({ size: Type.Optional(Type.Integer()) }),
    status: Type.Object({}),
  })
const fleetResource = kind('Fleet', 'fleets')
const boatResource = kind('Boat', 'boats')
const durations = { leaseDurationMs: 5_000, renewDeadlineMs: 3_500, retryPeriodMs: 300 }
let api: TestServer
let namespace = ''
let round = 0
before(async () => {
  api = await startTestServer({ kinds: [fleetResource, boatResource] })
})
beforeEach(async () => {
  namespace = `round-${round++}`
  await api.client.resource(namespaceResource).create({ metadata: { name: namespace } })
})
after(() => api.close())

const createFleet = (name: string) => api.client.resource(fleetResource).create({ metadata: { name, namespace }, spec: {} })
const ownedBy = (owner: KubeObject<unknown>, resource: Resource<unknown>, name: string) => ({
  metadata: {
    ...{ name, namespace },
    ownerReferences: [controllerReference({ ...owner, apiVersion: resource.apiVersion, kind: resource.kind })],
  },
})
const labelOf = (object: KubeObject<unknown>) => object.metadata.labels?.[bucketLabel]

test('labelOwnedObjects labels the objects that a kind owns with the buckets of their roots, and nothing else', async () => {
  const configMaps = api.client.resource(configMapResource)
  const fleets = await Promise.all(Array.from({ length: 12 }, (_, index) => createFleet(`fleet-${index}`)))
  for (const fleet of fleets)
    await configMaps.create({ ...ownedBy(fleet, fleetResource, fleet.metadata.name), data: { kept: fleet.metadata.name } })
  const [fleet] = fleets
  const boat = await api.client.resource(boatResource).create({ metadata: { name: 'boat', namespace }, spec: {} })
  await configMaps.create(ownedBy(boat, boatResource, 'of-another-kind'))
  await configMaps.create({ metadata: { name: 'without-owner', namespace } })
  const labeled = ownedBy(fleet!, fleetResource, 'labeled')
  await configMaps.create({ ...labeled, metadata: { ...labeled.metadata, labels: { [bucketLabel]: '7' } } })
  const options = { for: fleetResource, owned: configMapResource, namespace }
  deepEqual(await labelOwnedObjects(api.client, { ...options, isDryRun: true }), { labeled: 12, remaining: 0 })
  deepEqual(await labelOwnedObjects(api.client, { ...options, isDryRun: true }), { labeled: 12, remaining: 0 })
  deepEqual(await labelOwnedObjects(api.client, options), { labeled: 12, remaining: 0 })
  for (const { metadata } of fleets) {
    const object = await configMaps.get(metadata.name, { namespace })
    equal(labelOf(object), String(bucketOf(metadata.uid)))
    deepEqual(object.data, { kept: metadata.name })
  }
  for (const name of ['of-another-kind', 'without-owner']) equal(labelOf(await configMaps.get(name, { namespace })), undefined)
  equal(labelOf(await configMaps.get('labeled', { namespace })), '7')
  deepEqual(await labelOwnedObjects(api.client, options), { labeled: 0, remaining: 0 })
})

test('labelOwnedObjects gives what an owned object owns the bucket of the root, as soon as the owned object has it', async () => {
  const fleet = await createFleet('fleet')
  const boat = await api.client.resource(boatResource).create({ ...ownedBy(fleet, fleetResource, 'boat'), spec: {} })
  const secrets = api.client.resource(secretResource)
  await secrets.create(ownedBy(boat, boatResource, 'sail'))
  const ofBoats = { for: boatResource, owned: secretResource, sharded: 'owned', namespace } as const
  deepEqual(await labelOwnedObjects(api.client, ofBoats), { labeled: 0, remaining: 1 })
  deepEqual(await labelOwnedObjects(api.client, { for: fleetResource, owned: boatResource, namespace }), { labeled: 1, remaining: 0 })
  deepEqual(await labelOwnedObjects(api.client, ofBoats), { labeled: 1, remaining: 0 })
  equal(labelOf(await secrets.get('sail', { namespace })), String(bucketOf(fleet.metadata.uid)))
})

/** A sharded operator that creates what its cache does not have. */
function startOperator(parts: { log?: Log; registry?: Registry; timers?: VirtualTimers }) {
  const created: string[] = []
  const reconciled = new Set<string>()
  const manager = new Manager({
    ...{ client: api.client, log: silentLog, ...parts },
    shards: { name: 'adopted', namespace, slots: 1, ...durations },
  })
  manager.add(
    controller({
      ...{ name: 'fleet', for: fleetResource, informer: { namespace } },
      owns: [{ resource: configMapResource, informer: { namespace } }],
      reconcile: async ({ object, client }) => {
        if (!object) return
        reconciled.add(object.metadata.name)
        if (manager.informer(configMapResource, { namespace, sharded: 'owned' }).list(namespace).length > 0) return
        created.push(object.metadata.name)
        const { metadata } = ownedBy(object, fleetResource, '')
        await client.resource(configMapResource).create({ metadata: { ...metadata, name: undefined, generateName: 'boat-' } as never })
      },
    }),
  )
  return { manager, created, reconciled }
}

for (const isLabeled of [true, false]) {
  test(`a sharded operator that creates what its cache does not have ${isLabeled ? 'finds' : 'creates again'} what was created before it was sharded, ${isLabeled ? 'after' : 'before'} it is labeled`, async () => {
    const fleet = await createFleet('fleet')
    await api.client.resource(configMapResource).create(ownedBy(fleet, fleetResource, 'boat-1'))
    if (isLabeled) await labelOwnedObjects(api.client, { for: fleetResource, owned: configMapResource, namespace })
    const { manager, created, reconciled } = startOperator({})
    try {
      await manager.start()
      await eventually(() => reconciled.size === 1, 'the first reconcile', 60_000)
    } finally {
      await manager.stop({ graceMs: 2_000 })
    }
    deepEqual(created, isLabeled ? [] : ['fleet'])
  })
}

test('owned objects without the label are a warning and a gauge, until they are labeled', async () => {
  const fleet = await createFleet('fleet')
  const configMaps = api.client.resource(configMapResource)
  for (const name of ['boat-1', 'boat-2']) await configMaps.create(ownedBy(fleet, fleetResource, name))
  await configMaps.create({ metadata: { name: 'without-owner', namespace } })
  const registry = new Registry()
  const timers = new VirtualTimers()
  const warnings: { fields: object; message: string }[] = []
  const log: Log = { ...silentLog, warn: (fields, message) => void warnings.push({ fields, message }), child: () => log }
  const { manager } = startOperator({ log, registry, timers })
  const counted = async () => /^controller_shards_unlabeled_objects\{[^\n]*$/m.exec(await registry.metrics())?.[0]
  try {
    await manager.start()
    const series = 'controller_shards_unlabeled_objects{controller="fleet",resource="configmaps"}'
    await eventually(counted, found => found === `${series} 2`, 60_000)
    const [warning] = warnings.filter(({ message }) => message.includes(bucketLabel))
    deepEqual(warning?.fields, {
      ...{ kind: 'configmaps', count: 2, isComplete: true },
      examples: [`${namespace}/boat-1`, `${namespace}/boat-2`],
    })
    match(warning?.message ?? '', /owned objects without the label .* label them with labelOwnedObjects\(\)$/)
    await labelOwnedObjects(api.client, { for: fleetResource, owned: configMapResource, namespace })
    await timers.advance(599_000)
    equal(await counted(), `${series} 2`)
    await timers.advance(1_001)
    await eventually(counted, found => found === `${series} 0`, 60_000)
    equal(warnings.filter(({ message }) => message.includes(bucketLabel)).length, 1)
  } finally {
    await manager.stop({ graceMs: 2_000 })
  }
  equal(await counted(), undefined)
})
