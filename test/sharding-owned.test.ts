import { deepEqual, equal } from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { configMapResource, metadataOnly, secretResource } from '../src/kubernetes/client/index.ts'
import {
  bucketLabel,
  bucketOf,
  controller,
  createOrPatch,
  type Log,
  Manager,
  silentLog,
  type WatchSource,
  watching,
} from '../src/kubernetes/controller/index.ts'
import { controllerReference, defineResource, Type } from '../src/kubernetes/object/index.ts'
import { startTestServer, type TestServer } from '../src/kubernetes/testing/index.ts'
import { eventually } from './support/eventually.ts'

const kind = (name: string, plural: string) =>
  defineResource({
    ...{ group: 'owned.example', version: 'v1', kind: name, plural, scope: 'Namespaced', description: name },
    spec: Type.Object({ size: Type.Optional(Type.Integer()) }),
    status: Type.Object({ size: Type.Optional(Type.Integer()) }),
  })
const fleetResource = kind('Fleet', 'fleets')
const boatResource = kind('Boat', 'boats')
const namespace = 'default'
const count = 20
const durations = { leaseDurationMs: 5_000, renewDeadlineMs: 3_500, retryPeriodMs: 300 }
let api: TestServer
before(async () => {
  api = await startTestServer({ kinds: [fleetResource, boatResource] })
})
after(() => api.close())

test('two controllers, of a kind and of what it owns, leave each owned object to the member that has its root, with one cache for both', async () => {
  const managers = ['a', 'b'].map(identity => {
    const manager = new Manager({
      client: api.client,
      log: silentLog,
      shards: { name: 'owned', namespace, slots: 2, identity, ...durations },
    })
    manager.add(
      controller({
        name: 'fleet',
        for: fleetResource,
        owns: [boatResource],
        reconcile: async ({ object, name, client }) => {
          if (!object || manager.informer(boatResource, { sharded: 'owned' }).has(`${namespace}/${name}-1`)) return
          const owner = controllerReference({ ...object, apiVersion: fleetResource.apiVersion, kind: fleetResource.kind })
          await client
            .resource(boatResource)
            .create({ metadata: { name: `${name}-1`, namespace, ownerReferences: [owner] }, spec: { size: 1 } })
        },
      }),
    )
    manager.add(
      controller({
        name: 'boat',
        for: boatResource,
        informer: { sharded: 'owned' },
        reconcile: async ({ object, name, client, shard }) => {
          if (!object || object.status?.size === 1) return
          equal(String(shard?.bucket), object.metadata.labels?.[bucketLabel])
          await client.resource(boatResource).patchStatus(name, { status: { size: object.spec.size } }, { namespace })
        },
      }),
    )
    return manager
  })
  try {
    await Promise.all(managers.map(manager => manager.start()))
    await eventually(() => managers.every(manager => (manager.shards?.counts().active ?? 0) > 500), 'both members to have buckets', 60_000)
    const names = Array.from({ length: count }, (_, index) => `fleet-${index}`)
    const fleets = await Promise.all(
      names.map(name => api.client.resource(fleetResource).create({ metadata: { name, namespace }, spec: {} })),
    )
    const boats = api.client.resource(boatResource)
    const done = async () => (await boats.list({ namespace })).items.filter(({ status }) => status?.size === 1)
    const items = await eventually(done, found => found.length === count, 60_000)
    const bucketOfFleet = new Map(fleets.map(({ metadata }) => [metadata.uid, String(bucketOf(metadata.uid))]))
    for (const { metadata } of items) equal(metadata.labels?.[bucketLabel], bucketOfFleet.get(metadata.ownerReferences?.[0]?.uid ?? ''))
    const sizes = managers.map(manager => [
      manager.informer(fleetResource, { sharded: 'root' }).size,
      manager.informer(boatResource, { sharded: 'owned' }).size,
    ])
    // Each holds the boats of its own fleets, and no others.
    for (const [own, owned] of sizes) equal(owned, own)
    equal(
      sizes.reduce((sum, [own]) => sum + own!, 0),
      count,
    )
  } finally {
    await Promise.all(managers.map(manager => manager.stop({ graceMs: 2_000 })))
  }
})

test('a transform of Secrets in a sharded controller sees their data, and the cache is the one of the manager', async () => {
  type Digest = { digest?: string }
  const transform = (secret: { data?: unknown } & object) => ({ ...secret, data: undefined, digest: JSON.stringify(secret.data) }) as never
  const manager = new Manager({ client: api.client, log: silentLog, shards: { name: 'secrets', namespace, slots: 1, ...durations } })
  const cache = manager.informer(secretResource, { transform })
  const seen: string[] = []
  manager.add(
    controller({
      name: 'fleet',
      for: fleetResource,
      watches: [watching(secretResource, () => [`${namespace}/reader`], { informer: { transform } })],
      reconcile: async ({ key }) => {
        if (key === `${namespace}/reader`) seen.push((cache.get(`${namespace}/token`) as Digest | undefined)?.digest ?? '')
      },
    }),
  )
  try {
    await manager.start()
    await api.client.resource(fleetResource).create({ metadata: { name: 'reader', namespace }, spec: {} })
    await eventually(() => seen.length > 0, 'the first reconcile', 60_000)
    await api.client.resource(secretResource).create({ metadata: { name: 'token', namespace }, data: { a: 'MQ==' } })
    await eventually(() => seen.at(-1) === '{"a":"MQ=="}', 'the reconcile after the Secret was created', 60_000)
    await api.client.resource(secretResource).patch('token', { data: { a: 'Mg==' } }, { type: 'merge', namespace })
    await eventually(() => seen.at(-1) === '{"a":"Mg=="}', 'the reconcile after the Secret was changed', 60_000)
  } finally {
    await manager.stop({ graceMs: 2_000 })
  }
})

test('a sharded controller warns once that it keeps only the metadata of watched Secrets, unless that was declared or a transform chooses', async () => {
  const warningsOf = async (source: WatchSource) => {
    const warnings: object[] = []
    const log: Log = {
      ...silentLog,
      warn: (fields, message) => void (/only metadata/.test(message) && warnings.push(fields)),
      child: () => log,
    }
    const manager = new Manager({ client: api.client, log, shards: { name: 'reduced', namespace, slots: 1, ...durations } })
    manager.add(controller({ name: 'fleet', for: fleetResource, watches: [source, source], reconcile: async () => undefined }))
    try {
      await manager.start()
    } finally {
      await manager.stop({ graceMs: 2_000 })
    }
    return warnings
  }
  const none = () => []
  deepEqual(await warningsOf(watching(secretResource, none)), [{ kinds: ['secrets'] }])
  deepEqual(await warningsOf(watching(metadataOnly(secretResource), none)), [])
  deepEqual(await warningsOf(watching(secretResource, none, { informer: { transform: secret => secret } })), [])
  deepEqual(await warningsOf(watching(boatResource, none)), [])
})

test('the client of a reconcile rejects writes once the bucket label of its owned object was changed', async () => {
  const boats = api.client.resource(boatResource)
  const labelOf = (bucket: string) => ({ metadata: { labels: { [bucketLabel]: bucket } } })
  const manager = new Manager({ client: api.client, log: silentLog, shards: { name: 'labels', namespace, slots: 1, ...durations } })
  const cache = manager.informer(boatResource, { sharded: 'owned' })
  const results: string[] = []
  manager.add(
    controller({
      name: 'boat',
      for: boatResource,
      informer: { sharded: 'owned' },
      reconcile: async ({ object, name, client, shard }) => {
        if (name !== 'relabeled' || !object) return
        const write = (size: number) => client.resource(boatResource).patchStatus(name, { status: { size } }, { namespace })
        const isFirst = results.length === 0
        results.push(`bucket ${shard?.bucket}`)
        if (!isFirst) return
        await write(1)
        await boats.patch(name, labelOf('8'), { type: 'merge', namespace })
        await eventually(() => cache.get(`${namespace}/${name}`)?.metadata.labels?.[bucketLabel] === '8', 'the changed label')
        results.push(`may write: ${shard?.mayWrite()}`)
        await write(2).catch((error: Error) => {
          results.push(error.name)
          throw error
        })
      },
    }),
  )
  try {
    await manager.start()
    await boats.create({ metadata: { name: 'relabeled', namespace, labels: { [bucketLabel]: '7' } }, spec: {} })
    await eventually(() => results.includes('bucket 8'), 'the reconcile in the new bucket', 60_000)
    deepEqual(results.slice(0, 4), ['bucket 7', 'may write: false', 'NotOwnerError', 'bucket 8'])
    equal((await boats.get('relabeled', { namespace })).status?.size, 1)
  } finally {
    await manager.stop({ graceMs: 2_000 })
  }
})

test('a controller of an owned kind corrects the bucket label of what that object owns', async () => {
  const boats = api.client.resource(boatResource)
  const maps = api.client.resource(configMapResource)
  const manager = new Manager({ client: api.client, log: silentLog, shards: { name: 'repair', namespace, slots: 1, ...durations } })
  manager.add(
    controller({
      name: 'boat',
      for: boatResource,
      informer: { sharded: 'owned' },
      owns: [configMapResource],
      reconcile: async ({ object, name, client }) => {
        if (name !== 'repaired' || !object) return
        const owner = { ...object, apiVersion: boatResource.apiVersion, kind: boatResource.kind }
        await createOrPatch(client.resource(configMapResource), { name, namespace }, current => ({
          metadata: { ...current?.metadata, ownerReferences: [controllerReference(owner)] },
          data: { size: String(object.spec.size) },
        }))
      },
    }),
  )
  const labelOf = async () => (await maps.getOrUndefined('repaired', { namespace }))?.metadata.labels?.[bucketLabel]
  try {
    await manager.start()
    await boats.create({
      metadata: { name: 'repaired', namespace, labels: { [bucketLabel]: '7' } },
      spec: { size: 1 },
    })
    await eventually(async () => (await labelOf()) === '7', 'the label', 60_000)
    await maps.patch('repaired', { metadata: { labels: { [bucketLabel]: '8' } } }, { type: 'merge', namespace })
    await boats.patch('repaired', { spec: { size: 2 } }, { type: 'merge', namespace })
    await eventually(async () => (await labelOf()) === '7', 'the corrected label', 60_000)
  } finally {
    await manager.stop({ graceMs: 2_000 })
  }
})
