import { deepEqual, equal, match, notEqual, ok } from 'node:assert/strict'
import { rmSync } from 'node:fs'
import { after, before, test } from 'node:test'
import type { KubeObject } from '../../object/index.ts'
import { Registry } from '../registry/index.ts'
import { makeDataDir, startTestServer, type TestServer } from '../server.testing.ts'
import { Store } from '../storage/index.ts'
import { KubernetesServiceController } from './kubernetes-service-controller.ts'
import { TaskQueue } from './task-queue.ts'

const servicePath = '/api/v1/namespaces/default/services/kubernetes'
const endpointsPath = '/api/v1/namespaces/default/endpoints/kubernetes'
const slicePath = '/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/kubernetes'

const dataDir = makeDataDir()
let server: TestServer
before(async () => {
  server = await startTestServer({ dataDir })
})
after(async () => {
  await server.close()
  rmSync(dataDir, { recursive: true, force: true })
})

const get = async (path: string): Promise<KubeObject> => (await server.call<KubeObject>(path)).body

/** The first event after `act` whose object is not being deleted. */
async function nextVersion(path: string, act: () => Promise<unknown>): Promise<KubeObject> {
  const collection = path.slice(0, path.lastIndexOf('/'))
  const before = (await get(path)).metadata.uid
  const events = await server.watch(`${collection}?watch=true&fieldSelector=metadata.name=kubernetes`)
  await act()
  try {
    for (let event = await events.next(); event; event = await events.next()) {
      const object = event.object as KubeObject
      if (event.type === 'ADDED' && object.metadata.uid !== before) return object
    }
    throw new Error('the watch ended')
  } finally {
    events.stop()
  }
}

test('the Service, the Endpoints and the EndpointSlice exist when the server has started, as kube-apiserver creates them', async () => {
  const { port } = server.server
  const service = await get(servicePath)
  deepEqual(service.metadata.labels, { component: 'apiserver', provider: 'kubernetes' })
  deepEqual(service.spec, {
    clusterIP: '10.96.0.1',
    clusterIPs: ['10.96.0.1'],
    internalTrafficPolicy: 'Cluster',
    ipFamilies: ['IPv4'],
    ipFamilyPolicy: 'SingleStack',
    ports: [{ name: 'https', port: 443, protocol: 'TCP', targetPort: port }],
    sessionAffinity: 'None',
    type: 'ClusterIP',
  })
  deepEqual(service.status, { loadBalancer: {} })
  const endpoints = await get(endpointsPath)
  deepEqual(endpoints.metadata.labels, { 'endpointslice.kubernetes.io/skip-mirror': 'true' })
  deepEqual(endpoints.subsets, [{ addresses: [{ ip: '127.0.0.1' }], ports: [{ name: 'https', port, protocol: 'TCP' }] }])
  const slice = await get(slicePath)
  deepEqual(slice.metadata.labels, { 'kubernetes.io/service-name': 'kubernetes' })
  equal(slice.addressType, 'IPv4')
  deepEqual(slice.endpoints, [{ addresses: ['127.0.0.1'], conditions: { ready: true } }])
  deepEqual(slice.ports, [{ name: 'https', port, protocol: 'TCP' }])
  for (const { metadata } of [service, endpoints, slice])
    deepEqual(
      metadata.managedFields?.map(({ manager }) => manager),
      ['kube-apiserver'],
    )
})

test('each object is recreated when it is deleted', async () => {
  for (const path of [servicePath, endpointsPath, slicePath]) {
    const before = await get(path)
    const after = await nextVersion(path, () => server.call(path, { method: 'DELETE' }))
    notEqual(after.metadata.uid, before.metadata.uid)
    const withoutMetadata = ({ metadata: _, ...fields }: KubeObject) => fields
    deepEqual(withoutMetadata(after), withoutMetadata(before))
  }
})

test('endpoints that a client changed are restored', async () => {
  const events = await server.watch('/apis/discovery.k8s.io/v1/namespaces/default/endpointslices?watch=true')
  const body = { endpoints: [{ addresses: ['192.0.2.9'] }] }
  equal((await server.call(slicePath, { method: 'PATCH', type: 'application/merge-patch+json', body })).code, 200)
  const addresses: string[] = []
  while (addresses.length < 3) {
    const event = await events.next()
    ok(event, 'the watch ended before the endpoints were restored')
    addresses.push((event.object as KubeObject & { endpoints: { addresses: string[] }[] }).endpoints[0]!.addresses[0]!)
  }
  deepEqual(addresses, ['127.0.0.1', '192.0.2.9', '127.0.0.1'])
  events.stop()
})

test('a client can annotate the endpoints, but not set a loopback address', async () => {
  const patch = (path: string, body: object) =>
    server.call<KubeObject>(path, { method: 'PATCH', type: 'application/merge-patch+json', body })
  for (const path of [endpointsPath, slicePath]) {
    const { code, body } = await patch(path, { metadata: { annotations: { note: 'a' } } })
    equal(code, 200, JSON.stringify(body))
  }
  equal((await patch(endpointsPath, { subsets: [{ addresses: [{ ip: '127.0.0.2' }] }] })).code, 422)
  equal((await patch(slicePath, { endpoints: [{ addresses: ['127.0.0.2'] }] })).code, 422)
})

test('the address of the Service is not allocated to another Service', async () => {
  const spec = { clusterIP: '10.96.0.1', ports: [{ port: 80 }] }
  const { code, body } = await server.call('/api/v1/namespaces/default/services', {
    body: { apiVersion: 'v1', kind: 'Service', metadata: { name: 'other' }, spec },
  })
  equal(code, 422)
  match(String(body.message), /provided IP is already allocated/)
})

/** Sends `write` and returns the next version of the Service after it that `accept` accepts. */
async function serviceAfter(
  write: () => Promise<{ code: number; body: unknown }>,
  accept: (service: KubeObject) => boolean,
): Promise<KubeObject> {
  const events = await server.watch('/api/v1/namespaces/default/services?watch=true&fieldSelector=metadata.name=kubernetes')
  const { code, body } = await write()
  ok(code < 300, JSON.stringify(body))
  try {
    for (let event = await events.next(); event; event = await events.next()) {
      const object = event.object as KubeObject
      if (BigInt(object.metadata.resourceVersion) > BigInt((body as KubeObject).metadata.resourceVersion) && accept(object)) return object
    }
    throw new Error('the watch ended')
  } finally {
    events.stop()
  }
}

test('a Service without its address is rebuilt as a valid one', async () => {
  const initial = (await get(servicePath)).spec
  const body = {
    spec: { type: 'ExternalName', externalName: 'db.example', selector: { app: 'db' }, clusterIP: null, clusterIPs: null },
  }
  const patch = () => server.call(servicePath, { method: 'PATCH', type: 'application/merge-patch+json', body })
  deepEqual((await serviceAfter(patch, () => true)).spec, initial)
})

test('a Service that became a LoadBalancer is rebuilt at the next start', async () => {
  const initial = (await get(servicePath)).spec
  const body = {
    spec: { type: 'LoadBalancer', externalTrafficPolicy: 'Local', selector: { app: 'db' }, loadBalancerClass: 'example.com/lb' },
  }
  equal((await server.call(servicePath, { method: 'PATCH', type: 'application/merge-patch+json', body })).code, 200)
  const { port } = server.server
  await server.close()
  server = await startTestServer({ dataDir, listen: { port } })
  deepEqual((await get(servicePath)).spec, initial)
  const annotate = { method: 'PATCH', type: 'application/merge-patch+json', body: { metadata: { annotations: { a: 'b' } } } }
  equal((await server.call(servicePath, annotate)).code, 200)
})

test('no other Service gets the address while default/kubernetes does not have it', async () => {
  const other = { apiVersion: 'v1', kind: 'Service', metadata: { name: 'other' }, spec: { clusterIP: '10.96.0.1', ports: [{ port: 80 }] } }
  const codes: number[] = []
  const removeThenClaim = async () => {
    const removed = await server.call(servicePath, { method: 'DELETE' })
    codes.push((await server.call('/api/v1/namespaces/default/services', { body: other })).code)
    return removed
  }
  await nextVersion(servicePath, removeThenClaim)
  deepEqual(codes, [422])
})

test('a restart with the same address writes nothing; with another port it updates the port, and keeps what an administrator added', async () => {
  const { port } = server.server
  const patch = { method: 'PATCH', type: 'application/merge-patch+json', body: { metadata: { labels: { team: 'platform' } } } }
  await server.call(servicePath, patch)
  const before = await Promise.all([servicePath, endpointsPath, slicePath].map(get))
  await server.close()
  server = await startTestServer({ dataDir, listen: { port } })
  const same = await Promise.all([servicePath, endpointsPath, slicePath].map(get))
  deepEqual(same, before)
  await server.close()
  server = await startTestServer({ dataDir })
  const [service, endpoints, slice] = (await Promise.all([servicePath, endpointsPath, slicePath].map(get))) as [
    KubeObject,
    KubeObject,
    KubeObject,
  ]
  const now = server.server.port
  notEqual(now, port)
  equal(service.metadata.labels?.team, 'platform')
  equal((service.spec as { ports: { targetPort: number }[] }).ports[0]?.targetPort, now)
  equal((endpoints.subsets as { ports: { port: number }[] }[])[0]?.ports[0]?.port, now)
  equal((slice.ports as { port: number }[])[0]?.port, now)
  equal(slice.metadata.generation, (before[2]?.metadata.generation ?? 0) + 1)
})

test('a conflict with a stored Service is reported once and resolved when that Service is deleted', async t => {
  const directory = makeDataDir()
  const store = await Store.open({ dataDir: directory, synchronous: 'OFF' })
  const failures: unknown[] = []
  const queue = new TaskQueue(error => failures.push(error))
  t.after(async () => {
    await queue.stop()
    await store.close()
    rmSync(directory, { recursive: true, force: true })
  })
  const registry = new Registry(store)
  const services = store.table(registry.find('', 'v1', 'services')!.storageName)
  const spec = { type: 'ClusterIP', clusterIP: '10.96.0.1', clusterIPs: ['10.96.0.1'], ports: [{ port: 80, protocol: 'TCP' }] }
  const serviceOf = (name: string, spec: object): KubeObject => {
    const metadata = { name, namespace: 'default', uid: name, resourceVersion: '', creationTimestamp: '2026-01-01T00:00:00Z' }
    return { apiVersion: 'v1', kind: 'Service', metadata, spec }
  }
  const old = await store.put(services, undefined, serviceOf('old', spec))
  const conflicts: string[] = []
  const controller = new KubernetesServiceController(store, registry, queue, message => conflicts.push(message))
  const { promise: isCreated, resolve: created } = Promise.withResolvers<void>()
  store.onCommit((table, events) => {
    controller.observe(table, events)
    if (events.some(({ entry }) => entry.key === 'default/kubernetes') && table === services) created()
  })
  await controller.publish({ address: '192.0.2.1', port: 6443 })
  await store.put(services, undefined, serviceOf('unrelated', { type: 'ExternalName', externalName: 'db.example' }))
  equal(services.get('default/kubernetes'), undefined)
  await store.remove(services, old, serviceOf('old', spec))
  await isCreated
  equal(conflicts.length, 1)
  match(conflicts[0]!, /10\.96\.0\.1: provided IP is already allocated/)
  deepEqual(failures, [])
})
