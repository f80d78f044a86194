import { deepEqual, equal } from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { boatController, boatResource } from '../examples/operators/boats.ts'
import { domainController, domainResource } from '../examples/operators/domains.ts'
import { fleetController, fleetResource } from '../examples/operators/fleets.ts'
import { configMapResource } from '../src/kubernetes/client/index.ts'
import { Manager, silentLog } from '../src/kubernetes/controller/index.ts'
import { startTestServer, type TestServer } from '../src/kubernetes/testing/index.ts'
import { eventually } from './support/eventually.ts'

let api: TestServer
before(async () => {
  api = await startTestServer({ kinds: [boatResource, fleetResource, domainResource] })
})
after(() => api.close())

async function running(prepare: (manager: Manager) => void, run: (manager: Manager) => Promise<void>) {
  const manager = new Manager({ client: api.client, log: silentLog })
  prepare(manager)
  await manager.start()
  try {
    await run(manager)
  } finally {
    await manager.stop({ graceMs: 1_000 })
  }
}

test('boats.ts: a boat gets its crew, and a different one after its spec changes', async () => {
  await running(
    manager => manager.add(boatController()),
    async manager => {
      const boats = api.client.resource(boatResource)
      const crew = () => manager.informer(boatResource).get('default/tern')?.status?.crew
      await boats.create({ metadata: { name: 'tern' }, spec: { seats: 4 } })
      await eventually(() => crew() === 4, 'a crew of 4')
      await boats.patch('tern', { spec: { seats: 5 } }, { type: 'merge' })
      await eventually(() => crew() === 5, 'a crew of 5')
    },
  )
})

test('fleets.ts: ConfigMaps are created, corrected, and deleted with their ship', async () => {
  await running(
    manager => manager.add(fleetController(manager)),
    async manager => {
      const fleets = api.client.resource(fleetResource)
      const maps = api.client.resource(configMapResource)
      const orders = manager.informer(configMapResource, { labelSelector: 'harbor.example/fleet' })
      const configMaps = () =>
        orders
          .list()
          .map(({ metadata, data }) => `${metadata.name}:${data?.port}`)
          .sort()
          .join()
      await fleets.create({ metadata: { name: 'north' }, spec: { ships: ['a', 'b'], port: 'Kiel' } })
      await eventually(() => configMaps() === 'north-a:Kiel,north-b:Kiel', 'two orders')
      await maps.delete('north-a')
      await maps.patch('north-b', { data: { port: 'Rome' } }, { type: 'merge' })
      await eventually(() => configMaps() === 'north-a:Kiel,north-b:Kiel', 'both are corrected')
      await fleets.patch('north', { spec: { ships: ['b', 'c'] } }, { type: 'merge' })
      await eventually(() => configMaps() === 'north-b:Kiel,north-c:Kiel', 'a was deleted, c was created')
      await eventually(() => manager.informer(fleetResource).get('default/north')?.status?.ready === 2, 'two are ready')
    },
  )
})

test('domains.ts: the external record follows and is deleted before the object; an invalid name is not retried', async () => {
  const records = new Map<string, string>()
  let failures = 2
  const registry = {
    set: async (name: string, address: string) => void records.set(name, address),
    remove: async (name: string) => {
      records.delete(name)
    },
  }
  const flaky = {
    ...registry,
    set: async (name: string, address: string) => {
      if (failures-- > 0) throw new Error('the registry does not answer')
      await registry.set(name, address)
    },
  }
  await running(
    manager => manager.add(domainController(flaky)),
    async manager => {
      const domains = api.client.resource(domainResource)
      const cache = manager.informer(domainResource)
      await domains.create({ metadata: { name: 'bad' }, spec: { name: 'nodot', address: '10.0.0.1' } })
      await domains.create({ metadata: { name: 'web' }, spec: { name: 'web.example', address: '10.0.0.1' } })
      await eventually(() => cache.get('default/web')?.status?.registered === 'web.example', 'registered after two failures', 10_000)
      await domains.patch('web', { spec: { name: 'www.example' } }, { type: 'merge' })
      await eventually(() => cache.get('default/web')?.status?.registered === 'www.example', 'renamed')
      deepEqual([...records], [['www.example', '10.0.0.1']])
      await domains.delete('web')
      await eventually(() => cache.get('default/web') === undefined, 'gone')
      equal(records.size, 0)
    },
  )
})
