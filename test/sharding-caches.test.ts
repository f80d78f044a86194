/** When the caches of a member of a ring are filled, and what it shows until then. */
import { deepEqual, match } from 'node:assert/strict'
import { after, afterEach, before, test } from 'node:test'
import { type Client, configMapResource, installKinds, type RequestOptions, WrappedClient } from '../src/kubernetes/client/index.ts'
import { bucketLabel, bucketOf, controller, Manager, silentLog } from '../src/kubernetes/controller/index.ts'
import { controllerReference, defineResource, Type } from '../src/kubernetes/object/index.ts'
import { startTestServer, type TestServer } from '../src/kubernetes/testing/index.ts'
import { eventually } from './support/eventually.ts'

const kind = (name: string, plural: string) =>
  defineResource({
    ...{ group: 'caches.example', version: 'v1', kind: name, plural, scope: 'Namespaced', description: name },
    spec: Type.Object({}),
    status: Type.Object({}),
  })
const boatResource = kind('Boat', 'boats')
const ghostResource = kind('Ghost', 'ghosts')
const namespace = 'default'
let api: TestServer
let rings = 0
let manager: Manager

before(async () => {
  api = await startTestServer({ kinds: [boatResource] })
})
after(() => api.close())
afterEach(() => manager.stop({ graceMs: 1_000 }))

function managerOn(client: Client): Manager {
  const shards = { name: `caches${rings++}`, namespace, slots: 1, leaseDurationMs: 5_000, renewDeadlineMs: 3_500, retryPeriodMs: 300 }
  const listWatch = { backoff: { minMs: 20, maxMs: 50 } }
  manager = new Manager({ client, log: silentLog, shards, listWatch })
  return manager
}

/** Lists and watches of ConfigMaps wait. */
class LateConfigMaps extends WrappedClient {
  readonly #until: Promise<void>

  constructor(inner: Client, until: Promise<void>) {
    super(inner)
    this.#until = until
  }

  override async request(options: RequestOptions) {
    await this.#wait(options)
    return await super.request(options)
  }

  override async stream(options: RequestOptions) {
    await this.#wait(options)
    return await super.stream(options)
  }

  async #wait({ method, path }: RequestOptions): Promise<void> {
    if (method === 'GET' && path.includes('/configmaps')) await this.#until
  }
}

test('a controller that is added to a member with buckets reconciles nothing until all its caches are filled', async () => {
  const boat = await api.client.resource(boatResource).create({ metadata: { name: 'boat', namespace }, spec: {} })
  const labels = { [bucketLabel]: String(bucketOf(boat.metadata.uid)) }
  const ownerReferences = [controllerReference(boat)]
  await api.client.resource(configMapResource).create({ metadata: { name: 'boat', namespace, labels, ownerReferences } })
  const gate = Promise.withResolvers<void>()
  managerOn(new LateConfigMaps(api.client, gate.promise))
  await manager.start()
  await eventually(() => manager.shards?.counts().active === 1_024, 'all buckets')
  const maps = manager.informer(configMapResource, { sharded: 'owned' })
  const seen: boolean[] = []
  const boats = controller({
    name: 'boats',
    for: boatResource,
    owns: [configMapResource],
    reconcile: async ({ key }) => void seen.push(maps.has(key)),
  })
  manager.add(boats)
  await eventually(() => boats.depth.waiting === 1 || seen.length > 0, 'the key in the queue')
  deepEqual(manager.readyz().reasons, ['the cache of configmaps is not filled yet'])
  gate.resolve()
  await eventually(() => seen.length > 0, 'a reconcile')
  deepEqual([...new Set(seen)], [true])
  deepEqual(manager.readyz().reasons, [])
})

test('a member that cannot fill its caches is not ready and names the kind, and is ready as soon as it can', async () => {
  managerOn(api.client)
  const seen: string[] = []
  manager.add(controller({ name: 'ghosts', for: ghostResource, reconcile: async ({ key }) => void seen.push(key) }))
  await manager.start()
  const reasons = await eventually(
    () => manager.readyz().reasons,
    found => found.length > 0,
  )
  match(reasons.join(), /^the cache of ghosts is not filled yet: the server has no ghosts of caches.example\/v1/)
  await installKinds(api.client, [ghostResource])
  await eventually(() => manager.readyz().ok && manager.shards?.counts().active === 1_024, 'the manager to be ready')
  await api.client.resource(ghostResource).create({ metadata: { name: 'ghost', namespace }, spec: {} })
  await eventually(() => seen.includes(`${namespace}/ghost`), 'a reconcile')
})
