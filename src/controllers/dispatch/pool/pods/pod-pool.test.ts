import { deepEqual, equal, rejects } from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout } from 'node:timers/promises'
import { eventually } from '../../../../../test/support/eventually.ts'
import { annotations, labels, oarlockResources, workerPoolResource, workerResource } from '../../../../api/index.ts'
import { type Client, leaseResource, namespaceResource } from '../../../../kubernetes/client/index.ts'
import { Manager, silentLog } from '../../../../kubernetes/controller/index.ts'
import { startTestServer } from '../../../../kubernetes/testing/index.ts'
import { makeWorker, podNamespace } from './make-pod.ts'
import { podResource } from './pod.ts'
import { PodPool } from './pod-pool.ts'

const template = { spec: { containers: [{ name: 'worker', image: 'example/oarlock' }] } }

/** A pool and the driver of its Pods, whose manager is not started. */
async function createPool(client: Client) {
  const pool = await client.resource(workerPoolResource).create({ metadata: { name: 'pods' }, spec: { mode: 'Pod', template } })
  const namespace = podNamespace(pool)
  await client.resource(namespaceResource).apply({ metadata: { name: namespace } }, { force: true })
  const manager = new Manager({ client, log: silentLog })
  const driver = new PodPool({ manager, log: silentLog, poolOf: () => pool, nowMs: Date.now, workers: { environment: {} } })
  return { pool, namespace, manager, driver }
}

test('a Worker owns its Pod, and a Pod that another user has created in its place is not taken', async () => {
  await using api = await startTestServer({ kinds: oarlockResources })
  const { pool, namespace, manager, driver } = await createPool(api.client)
  await manager.start()
  const pods = api.client.resource(podResource)
  const workers = api.client.resource(workerResource)
  await driver.start(pool, 'w1')
  equal((await pods.get('w1', { namespace })).metadata.ownerReferences?.[0]?.uid, (await workers.get('w1')).metadata.uid)

  await pods.create({ metadata: { name: 'w2', namespace }, spec: template.spec } as Parameters<typeof pods.create>[0])
  await rejects(driver.start(pool, 'w2'), /Pod oarlock-system\/w2 already exists and is not owned by its worker: delete it/)
  const { status } = await workers.get('w2')
  deepEqual([status?.phase, status?.reason], ['Failed', 'CreateFailed'])
  await manager.stop()
})

test('after a crash between the two, the next leader creates the Pod of the Worker', async () => {
  await using api = await startTestServer({ kinds: oarlockResources })
  const { pool, namespace, manager, driver } = await createPool(api.client)
  await api.client.resource(workerResource).create(makeWorker(pool, 'w1'))
  await manager.start()
  deepEqual(
    driver.running().map(({ name }) => name),
    ['w1'],
  )
  driver.collectGarbage(Date.now())
  driver.collectGarbage(Date.now())
  await eventually(() => api.client.resource(podResource).getOrUndefined('w1', { namespace }), 'the Pod')
  await manager.stop()
})

test('Pods to which a user gave the name and the labels of a worker are neither workers nor the end of one', async () => {
  await using api = await startTestServer({ kinds: oarlockResources })
  const { pool, namespace, manager, driver } = await createPool(api.client)
  await api.client.resource(namespaceResource).apply({ metadata: { name: 'shop' } }, { force: true })
  const reported: string[] = []
  driver.listen({
    observed: ({ name, isReleased }) => void reported.push(`${name} ${isReleased ? 'released' : 'runs'}`),
    exited: (name, exitCode) => void reported.push(`${name} exited with ${exitCode}`),
  })
  await manager.start()
  const pods = api.client.resource(podResource)
  await driver.start(pool, 'w1')
  const { uid } = (await api.client.resource(workerResource).get('w1')).metadata
  const owner = { apiVersion: 'oarlock.dev/v1alpha1', kind: 'Worker', name: 'w1', uid, controller: true }
  const terminated = { exitCode: 1, reason: 'Error', finishedAt: new Date().toISOString() }
  const failed = { phase: 'Failed', containerStatuses: [{ name: 'worker', image: 'a', imageID: '', state: { terminated } }] }
  for (const [name, ownerReferences] of [
    ['w1', [owner]],
    ['w2', [{ ...owner, name: 'w2', uid: 'none' }]],
    ['w3', []],
  ] as const) {
    const metadata = { name, namespace: 'shop', labels: { [labels.pool]: 'pods' }, ownerReferences: [...ownerReferences] }
    await pods.create({ metadata, spec: template.spec } as Parameters<typeof pods.create>[0])
  }
  for (const name of ['w1', 'w3']) {
    await pods.patchStatus(name, { status: failed } as never, { namespace: 'shop' })
    await pods.delete(name, { namespace: 'shop', gracePeriodSeconds: 0 })
  }
  // After the events of these.
  await pods.patchStatus('w1', { status: failed } as never, { namespace })
  await eventually(() => reported.includes('w1 exited with 1'), 'the end of its own Pod')
  deepEqual([...new Set(reported)], ['w1 runs', 'w1 exited with 1'])
  deepEqual(driver.running(), [])
  await manager.stop()
})

test('a Worker that the Lease of its Pod has registered remains registered when the Lease is deleted, and the end of the Pod is no failed start', async () => {
  await using api = await startTestServer({ kinds: oarlockResources })
  const { pool, namespace, manager, driver } = await createPool(api.client)
  await manager.start()
  await driver.start(pool, 'w1')
  const workers = api.client.resource(workerResource)
  const worker = await workers.get('w1')
  equal(driver.registered(worker), worker)

  const { apiVersion, kind, metadata } = worker
  const leases = api.client.resource(leaseResource)
  const pods = api.client.resource(podResource)
  const register = (holderIdentity: string) =>
    leases.create({
      metadata: {
        ...{ name: 'w1', namespace, ownerReferences: [{ apiVersion, kind, name: 'w1', uid: metadata.uid }] },
        annotations: { [annotations.workerStatus]: '{"isolation":["Pod"]}' },
      },
      spec: { holderIdentity },
    })
  await register('another Pod')
  await setTimeout(200)
  equal(driver.registered(worker), worker)
  await leases.delete('w1', { namespace })
  const podUid = (await pods.get('w1', { namespace })).metadata.uid
  const lease = await register(podUid)
  await eventually(() => driver.registered(worker).status?.phase === 'Ready', 'the registration')
  await leases.delete('w1', { namespace, preconditions: { uid: lease.metadata.uid } })
  const terminated = { exitCode: 1, startedAt: lease.metadata.creationTimestamp, finishedAt: lease.metadata.creationTimestamp }
  const status = { phase: 'Failed', containerStatuses: [{ name: 'worker', state: { terminated } }] }
  await pods.patchStatus('w1', { status } as never, { namespace })
  await eventually(() => driver.ended().length === 1, 'the end of the Pod')
  driver.collectGarbage(Date.now())
  const { spec, status: registered } = driver.registered(await workers.get('w1'))
  deepEqual([spec.pod?.uid, registered?.phase, registered?.isolation], [podUid, 'Ready', ['Pod']])
  await manager.stop()
})
