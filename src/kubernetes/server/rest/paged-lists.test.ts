import assert from 'node:assert/strict'
import { rmSync } from 'node:fs'
import { test } from 'node:test'
import type { KubeObject } from '../../object/index.ts'
import { makeDataDir, startTestServer, type TestServer } from '../server.testing.ts'

type List = { metadata: { resourceVersion: string; continue?: string }; reason?: string; items: KubeObject[] }
const path = '/api/v1/namespaces/default/configmaps'

const create = (server: TestServer, name: string) =>
  server.call(path, { body: { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name } } })
const namesOf = ({ items }: List) => items.map(({ metadata }) => metadata.name)

test('a continue token is valid after a restart, and the 410 for an expired one contains a new token', async () => {
  const dataDir = makeDataDir()
  let server = await startTestServer({ dataDir })
  try {
    for (const name of ['a', 'b', 'c', 'd']) await create(server, name)
    const first = (await server.call<List>(`${path}?limit=2`)).body
    assert.deepEqual(namesOf(first), ['a', 'b'])
    const next = `${path}?limit=1&continue=${first.metadata.continue}`

    await server.close()
    server = await startTestServer({ dataDir })
    await create(server, 'bb')
    const second = (await server.call<List>(next)).body
    assert.deepEqual(namesOf(second), ['c'], 'an object created after the first page is not in the second')
    assert.equal(second.metadata.resourceVersion, first.metadata.resourceVersion)

    await server.close()
    server = await startTestServer({ dataDir })
    const expired = await server.call<List>(next)
    assert.deepEqual([expired.code, expired.body.reason], [410, 'Expired'])
    const rest = (await server.call<List>(`${path}?limit=2&continue=${expired.body.metadata.continue}`)).body
    assert.deepEqual(namesOf(rest), ['bb', 'c'], 'the current objects from the key of the token on')
    assert.deepEqual(namesOf((await server.call<List>(`${path}?continue=${rest.metadata.continue}`)).body), ['d'])
  } finally {
    await server.close()
    rmSync(dataDir, { recursive: true, force: true })
  }
})

test('a continue token of one resource does not read the snapshot of another', async () => {
  const server = await startTestServer()
  try {
    for (const name of ['a', 'b']) await create(server, name)
    await server.call('/api/v1/namespaces/default/secrets', { body: { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'b' } } })
    const { metadata } = (await server.call<List>(`${path}?limit=1`)).body
    const { body } = await server.call<List>(`/api/v1/namespaces/default/secrets?continue=${metadata.continue}`)
    assert.deepEqual([namesOf(body), (body as unknown as { kind: string }).kind], [['b'], 'SecretList'])
  } finally {
    await server.close()
  }
})
