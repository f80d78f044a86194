import { deepEqual, equal, rejects } from 'node:assert/strict'
import { test } from 'node:test'
import { eventually } from '../../../../../test/support/eventually.ts'
import { oarlockResources, workerPoolResource, workerResource } from '../../../../api/index.ts'
import { namespaceResource } from '../../../../kubernetes/client/index.ts'
import { Manager, silentLog } from '../../../../kubernetes/controller/index.ts'
import { startTestServer } from '../../../../kubernetes/testing/index.ts'
import { makeWorker, podNamespace } from './make-pod.ts'
import { podResource } from './pod.ts'
import { PodPool } from './pod-pool.ts'

test('a Worker owns its Pod, and a Pod that another user has created in its place is not taken', async () => {
  await using api = await startTestServer({ kinds: oarlockResources })
  const template = { spec: { containers: [{ name: 'worker', image: 'example/oarlock' }] } }
  const pool = await api.client.resource(workerPoolResource).create({ metadata: { name: 'pods' }, spec: { mode: 'Pod', template } })
  const namespace = podNamespace(pool)
  await api.client.resource(namespaceResource).apply({ metadata: { name: namespace } }, { force: true })
  const manager = new Manager({ client: api.client, log: silentLog })
  const driver = new PodPool({ manager, log: silentLog, poolOf: () => pool, nowMs: Date.now, workers: { environment: {} } })
  await manager.start()
  const pods = api.client.resource(podResource)
  const workers = api.client.resource(workerResource)
  await driver.start(pool, 'w1')
  equal((await pods.get('w1', { namespace })).metadata.ownerReferences?.[0]?.uid, (await workers.get('w1')).metadata.uid)

  await pods.create({ metadata: { name: 'w2', namespace }, spec: template.spec } as Parameters<typeof pods.create>[0])
  await rejects(driver.start(pool, 'w2'), /Pod oarlock-system\/w2 exists, and this controller has not created it: delete it/)
  const { status } = await workers.get('w2')
  deepEqual([status?.phase, status?.reason], ['Failed', 'CreateFailed'])
  await manager.stop()
})

test('after a crash between the two, the next leader creates the Pod of the Worker', async () => {
  await using api = await startTestServer({ kinds: oarlockResources })
  const template = { spec: { containers: [{ name: 'worker', image: 'example/oarlock' }] } }
  const pool = await api.client.resource(workerPoolResource).create({ metadata: { name: 'pods' }, spec: { mode: 'Pod', template } })
  const namespace = podNamespace(pool)
  await api.client.resource(namespaceResource).apply({ metadata: { name: namespace } }, { force: true })
  await api.client.resource(workerResource).create(makeWorker(pool, 'w1'))
  const manager = new Manager({ client: api.client, log: silentLog })
  const workers = { environment: {} }
  const driver = new PodPool({ manager, log: silentLog, poolOf: () => pool, nowMs: Date.now, workers })
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
