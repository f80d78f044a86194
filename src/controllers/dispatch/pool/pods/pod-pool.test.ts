import { deepEqual, equal, rejects } from 'node:assert/strict'
import { test } from 'node:test'
import { oarlockResources, workerPoolResource } from '../../../../api/index.ts'
import { namespaceResource, secretResource } from '../../../../kubernetes/client/index.ts'
import { Manager, silentLog } from '../../../../kubernetes/controller/index.ts'
import { startTestServer } from '../../../../kubernetes/testing/index.ts'
import { podNamespace } from './make-pod.ts'
import { podResource } from './pod.ts'
import { PodPool } from './pod-pool.ts'

test('creates no Pod while no credential can be issued for its worker, then a Pod and its Secret', async () => {
  await using api = await startTestServer({ kinds: oarlockResources })
  const template = { spec: { containers: [{ name: 'worker', image: 'example/oarlock' }] } }
  const pool = await api.client.resource(workerPoolResource).create({ metadata: { name: 'pods' }, spec: { mode: 'Pod', template } })
  const namespace = podNamespace(pool)
  await api.client.resource(namespaceResource).apply({ metadata: { name: namespace } }, { force: true })
  const manager = new Manager({ client: api.client, log: silentLog })
  let token: string | undefined
  const credentialOf = async () => {
    if (token === undefined) throw new Error('no join service')
    return token
  }
  const workers = { environment: async () => ({}), credentialOf }
  const driver = new PodPool({ manager, log: silentLog, poolOf: () => pool, nowMs: Date.now, workers })
  await manager.start()
  const pods = api.client.resource(podResource)

  await rejects(driver.start(pool, 'w1'), /no join service/)
  deepEqual((await pods.listAll()).items, [])

  token = 'secret'
  await driver.start(pool, 'w1')
  const pod = await pods.get('w1', { namespace })
  const secret = await api.client.resource(secretResource).get('w1', { namespace })
  equal(secret.metadata.ownerReferences?.[0]?.uid, pod.metadata.uid)
  await manager.stop()
})
