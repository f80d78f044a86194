import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { configMap, configMapsPath, startTestServer, type TestServer } from './server.testing.ts'

let server: TestServer
before(async () => {
  server = await startTestServer()
})
after(() => server.close())

describe('patches', () => {
  const patch = (name: string, type: string, body: unknown, query = '') =>
    server.call(configMapsPath('default', name) + query, { method: 'PATCH', type: `application/${type}`, body })

  test('JSON, merge and strategic patches are applied', async () => {
    await server.call(configMapsPath('default'), { body: configMap('patched', { a: '1' }) })
    assert.deepEqual((await patch('patched', 'json-patch+json', [{ op: 'add', path: '/data/b', value: '2' }])).body.data, {
      a: '1',
      b: '2',
    })
    assert.deepEqual((await patch('patched', 'merge-patch+json', { data: { a: null } })).body.data, { b: '2' })
    assert.deepEqual((await patch('patched', 'strategic-merge-patch+json', { data: { c: '3' } })).body.data, { b: '2', c: '3' })
    assert.equal((await patch('patched', 'json-patch+json', [{ op: 'test', path: '/data/b', value: '9' }])).code, 422)
  })

  test('server-side apply creates objects, tracks owners, reports conflicts and takes over with force', async () => {
    const applied = (data: object) => ({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'applied' }, data })
    const apply = (data: object, query: string) => patch('applied', 'apply-patch+yaml', applied(data), query)
    assert.equal((await apply({ a: '1' }, '')).code, 422)
    assert.equal((await apply({ a: '1', b: '1' }, '?fieldManager=one')).code, 201)
    const conflict = await apply({ a: '2' }, '?fieldManager=two')
    assert.deepEqual([conflict.code, conflict.body.reason], [409, 'Conflict'])
    assert.deepEqual(
      conflict.body.details?.causes?.map(cause => cause.field),
      ['.data.a'],
    )
    assert.equal((await apply({ a: '2' }, '?fieldManager=two&force=true')).body.data?.['a' as never], '2')
    const { body } = await apply({}, '?fieldManager=one')
    assert.deepEqual(body.data, { a: '2' }, 'one gave up b, and two owns a')
    const same = await apply({}, '?fieldManager=one')
    assert.equal(same.body.metadata.resourceVersion, body.metadata.resourceVersion)
  })

  test('concurrent patches of one object all take effect', async () => {
    await server.call(configMapsPath('default'), { body: configMap('busy') })
    await Promise.all(Array.from({ length: 50 }, (_, i) => patch('busy', 'merge-patch+json', { data: { [`k${i}`]: 'v' } })))
    assert.equal(Object.keys((await server.call(configMapsPath('default', 'busy'))).body.data as object).length, 50)
  })
})
