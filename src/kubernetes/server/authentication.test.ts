import assert from 'node:assert/strict'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { Agent, fetch } from 'undici'
import { eventually } from '../../../test/support/eventually.ts'
import { issueClientCertificate } from './index.ts'
import { configMapsPath, startTestServer, type TestServer } from './server.testing.ts'

let server: TestServer
before(async () => {
  server = await startTestServer()
})
after(() => server.close())

describe('authentication', () => {
  test('without credentials, only health and version are served', async () => {
    for (const path of ['/healthz', '/livez', '/readyz', '/version'])
      assert.equal((await server.call(path, { token: null })).code, 200, path)
    for (const path of ['/', '/api', '/apis', '/openapi/v3', configMapsPath('default'), '/healthz/etcd', '/metrics']) {
      assert.equal((await server.call(path, { token: null })).code, 401, path)
      assert.equal((await server.call(path, { token: 'wrong' })).code, 401, path)
    }
  })

  test("a client certificate of the server's CA authenticates its user", async () => {
    const { certificate, key } = await issueClientCertificate(
      join(server.dataDir, 'pki'),
      { name: 'carl', groups: ['system:masters'], ttlMs: 3_600_000 },
      Date.now(),
    )
    const agent = new Agent({ connect: { ca: server.server.caCertificate, cert: certificate, key } })
    const response = await fetch(server.server.url + configMapsPath('default'), { dispatcher: agent })
    assert.equal(response.status, 200)
    await response.arrayBuffer()
    await agent.destroy()
  })

  test('an issued token is accepted until it expires, and has only the permissions of its user', async () => {
    const { server: api } = server
    const admin = api.issueToken({ name: 'ann', groups: ['system:masters'], ttlMs: 60_000 })
    assert.equal((await server.call(configMapsPath('default'), { token: admin })).code, 200)
    const restricted = api.issueToken({ name: 'bob', groups: [], ttlMs: 60_000 })
    const denied = await server.call(configMapsPath('default'), { token: restricted })
    assert.equal(denied.code, 403)
    assert.match(
      denied.body.message!,
      /^configmaps is forbidden: User "bob" cannot list resource "configmaps" in API group "" in the namespace "default"/,
    )
    assert.equal((await server.call(configMapsPath('default'), { token: `${admin}x` })).code, 401)
    const expired = api.issueToken({ name: 'ann', groups: ['system:masters'], ttlMs: 1 })
    await eventually(async () => (await server.call(configMapsPath('default'), { token: expired })).code === 401, 'the token to expire')
  })
})
