import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import type { KubeObject } from '../object/index.ts'
import { configMap, configMapsPath, createNamespace, startTestServer, type TestServer, untilNotFound } from './server.testing.ts'

let server: TestServer
before(async () => {
  server = await startTestServer()
})
after(() => server.close())

describe('garbage collection and namespace deletion', () => {
  const owned = async (namespace: string, name: string, owner: KubeObject, extra: object = {}) => {
    const ownerReferences = [{ apiVersion: 'v1', kind: 'ConfigMap', name: owner.metadata.name, uid: owner.metadata.uid, ...extra }]
    return (await server.call(configMapsPath(namespace), { body: configMap(name, {}, { ownerReferences }) })).body
  }

  test('dependents are deleted after their last owner, recursively', async () => {
    const namespace = await createNamespace(server, 'gc')
    const { body: root } = await server.call(configMapsPath(namespace), { body: configMap('root') })
    const child = await owned(namespace, 'child', root)
    await owned(namespace, 'grandchild', child)
    await server.call(configMapsPath(namespace, 'root'), { method: 'DELETE' })
    await untilNotFound(server, configMapsPath(namespace, 'grandchild'))
    assert.equal((await server.call(configMapsPath(namespace, 'child'))).code, 404)
  })

  test('a dependent of an owner that never existed is deleted', async () => {
    await owned('default', 'lost', { ...configMap('never'), metadata: { name: 'never', uid: 'no-such-uid' } } as unknown as KubeObject)
    await untilNotFound(server, configMapsPath('default', 'lost'))
  })

  test('Orphan keeps dependents and removes the reference', async () => {
    const { body: root } = await server.call(configMapsPath('default'), { body: configMap('orphaner') })
    await owned('default', 'orphan', root)
    await server.call(`${configMapsPath('default', 'orphaner')}?propagationPolicy=Orphan`, { method: 'DELETE' })
    await untilNotFound(server, configMapsPath('default', 'orphaner'))
    assert.equal((await server.call(configMapsPath('default', 'orphan'))).body.metadata.ownerReferences, undefined)
  })

  test('Foreground deletes dependents first', async () => {
    const { body: root } = await server.call(configMapsPath('default'), { body: configMap('foreground') })
    const child = await owned('default', 'blocking', root, { blockOwnerDeletion: true })
    const hold = (finalizers: string[] | null) =>
      server.call(configMapsPath('default', 'blocking'), {
        method: 'PATCH',
        type: 'application/merge-patch+json',
        body: { metadata: { finalizers } },
      })
    await hold(['example.com/hold'])
    const watch = await server.watch(
      `${configMapsPath('default')}?watch=1&fieldSelector=metadata.name=blocking&resourceVersion=${child.metadata.resourceVersion}`,
    )
    await server.call(`${configMapsPath('default', 'foreground')}?propagationPolicy=Foreground`, { method: 'DELETE' })
    while (!(await watch.next())?.object.metadata.deletionTimestamp);
    watch.stop()
    assert.equal((await server.call(configMapsPath('default', 'foreground'))).code, 200, 'the owner waits')
    await hold(null)
    await untilNotFound(server, configMapsPath('default', 'foreground'))
  })

  test('deleting a namespace deletes its content, and rejects new objects meanwhile', async () => {
    const namespace = await createNamespace(server, 'going')
    await server.call(configMapsPath(namespace), { body: configMap('held', {}, { finalizers: ['example.com/hold'] }) })
    await server.call(configMapsPath(namespace), { body: configMap('free') })
    const { body } = await server.call(`/api/v1/namespaces/${namespace}`, { method: 'DELETE' })
    assert.equal((body.status as unknown as { phase: string }).phase, 'Terminating')
    const late = await server.call(configMapsPath(namespace), { body: configMap('late') })
    assert.equal(late.code, 403)
    assert.match(late.body.message!, /because it is being terminated/)
    await untilNotFound(server, configMapsPath(namespace, 'free'))
    await server.call(configMapsPath(namespace, 'held'), {
      method: 'PATCH',
      type: 'application/merge-patch+json',
      body: { metadata: { finalizers: null } },
    })
    await untilNotFound(server, `/api/v1/namespaces/${namespace}`)
  })
})
