import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startTestServer } from './server.testing.ts'

const secrets = '/api/v1/namespaces/default/secrets'

test('POST /encryption/rotate is for administrators; the server continues with the new key', async () => {
  const server = await startTestServer()
  try {
    const body = { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'a' }, stringData: { password: 'hunter2' } }
    assert.equal((await server.call(secrets, { body })).code, 201)
    const rotate = (options: object) => server.call<{ key: string; objects: number }>('/encryption/rotate', { method: 'POST', ...options })
    const token = server.server.issueToken({ name: 'jane', groups: [], ttlMs: 60_000 })
    assert.deepEqual([(await rotate({ token: null })).code, (await rotate({ token })).code], [401, 403])
    assert.equal((await rotate({ method: 'GET' })).code, 405)
    assert.equal((await server.call('/encryption/other', { method: 'POST' })).code, 404)
    const { code, body: rotation } = await rotate({})
    assert.deepEqual([code, rotation.objects], [200, 1])
    assert.notEqual((await rotate({})).body.key, rotation.key)
    assert.equal((await server.call(`${secrets}/a`)).body.metadata.name, 'a')
    assert.equal((await server.call(`${secrets}/a`, { method: 'DELETE' })).code, 200)
  } finally {
    await server.close()
  }
})
