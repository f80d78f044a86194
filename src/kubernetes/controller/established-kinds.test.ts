import { deepEqual, equal, ok } from 'node:assert/strict'
import { test } from 'node:test'
import { eventually } from '../../../test/support/eventually.ts'
import { crdResource, installKinds } from '../client/index.ts'
import { defineResource, Type } from '../object/index.ts'
import { startTestServer, VirtualTimers } from '../testing/index.ts'
import { controller, Manager, silentLog } from './index.ts'

const boatResource = defineResource({
  ...{ group: 'harbor.example', version: 'v1', kind: 'Boat', plural: 'boats', scope: 'Namespaced', description: 'A boat.' },
  spec: Type.Object({ seats: Type.Integer() }),
  status: Type.Object({}),
})

test('a CRD that is missing is named in the log', async () => {
  await using api = await startTestServer()
  const timers = new VirtualTimers()
  const warnings: unknown[] = []
  const log = { ...silentLog, warn: (...line: unknown[]) => void warnings.push(line), child: () => log } as typeof silentLog
  const manager = new Manager({ client: api.client, log, timers })
  manager.add(controller({ name: 'boats', for: boatResource, whenEstablished: true, reconcile: async () => {} }))
  await timers.advance(5_000)
  deepEqual(warnings, [[{ controller: 'boats', crd: 'boats.harbor.example' }, 'CRD is not installed: the controller starts when it is']])
  await manager.stop()
})

test('a controller starts when its CRD is Established, stops when it is deleted, and starts again; the manager is ready all the time', async () => {
  await using api = await startTestServer()
  const calls: string[] = []
  const manager = new Manager({ client: api.client, log: silentLog, listWatch: { backoff: { minMs: 5, maxMs: 50 } } })
  const boats = controller({
    name: 'boats',
    for: boatResource,
    whenEstablished: true,
    reconcile: async ({ key, object }) => {
      calls.push(`${key} ${object ? 'exists' : 'is gone'}`)
    },
  })
  manager.add(boats)
  await manager.start()
  ok(manager.readyz().ok, JSON.stringify(manager.readyz()))
  const create = (name: string) =>
    api.client.resource(boatResource).create({ metadata: { name, namespace: 'default' }, spec: { seats: 1 } })

  await installKinds(api.client, [boatResource])
  await create('a')
  await eventually(() => calls.includes('default/a exists'), 'the first reconcile')

  await api.client.resource(crdResource).delete('boats.harbor.example')
  await eventually(
    async () => (await api.client.resource(crdResource).getOrUndefined('boats.harbor.example')) === undefined,
    'the CRD to be gone',
  )
  await eventually(() => !boats.isRunning, 'the controller to stop')
  ok(manager.readyz().ok, JSON.stringify(manager.readyz()))

  calls.length = 0
  await installKinds(api.client, [boatResource])
  await create('b')
  await eventually(() => calls.includes('default/b exists'), 'the reconcile after the CRD was installed again')
  equal(calls.filter(call => call === 'default/a exists').length, 0)
  await manager.stop({ graceMs: 1_000 })
  deepEqual(boats.depth, { waiting: 0, running: 0, delayed: 0 })
})

test('a version that the CRD does not serve is not started', async () => {
  await using api = await startTestServer({ kinds: [boatResource] })
  const manager = new Manager({ client: api.client, log: silentLog })
  const later = { ...boatResource, version: 'v2', apiVersion: 'harbor.example/v2' }
  const boats = controller({ name: 'boats', for: later, whenEstablished: true, reconcile: async () => undefined })
  manager.add(boats)
  await manager.start()
  await new Promise(resolve => setTimeout(resolve, 200))
  equal(boats.isRunning, false)
  ok(manager.readyz().ok)
  await manager.stop({ graceMs: 1_000 })
})
