import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { startTestServer, type TestServer } from '../server.testing.ts'

let server: TestServer
before(async () => {
  server = await startTestServer()
})
after(() => server.close())

const protobuf = 'application/com.github.proto-openapi.spec.v2@v1.0+protobuf'

test('responds with 304 if the client has the document already', async () => {
  for (const [path, accept] of [
    ['/apis', 'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList'],
    ['/openapi/v2', 'application/json'],
    ['/openapi/v2', protobuf],
    ['/openapi/v3', 'application/json'],
    ['/openapi/v3/api/v1', 'application/json'],
  ] as const) {
    const first = await server.call(path, { headers: { accept } })
    const etag = first.headers.get('etag')
    assert.ok(first.code === 200 && etag, path)
    const again = await server.call(path, { headers: { accept, 'if-none-match': etag } })
    assert.deepEqual([again.code, again.body, again.headers.get('etag')], [304, '', etag], path)
    assert.equal((await server.call(path, { headers: { accept, 'if-none-match': '"another"' } })).code, 200)
  }
})

test('OpenAPI 3 is immutable at its hash, redirects from an old hash, and gets a new hash with a new definition', async () => {
  type Paths = { paths: Record<string, { serverRelativeURL: string }> }
  const urlOf = async (path: string) => (await server.call<Paths>('/openapi/v3')).body.paths[path]?.serverRelativeURL
  const url = (await urlOf('apis/coordination.k8s.io/v1'))!
  const found = await server.call(url)
  assert.deepEqual([found.code, found.headers.get('cache-control')], [200, 'public, immutable'])
  assert.ok(Date.parse(found.headers.get('expires')!) > Date.now() + 300 * 86_400_000)
  assert.equal((await server.call(url.replace(/hash=.*/, 'hash=0123'))).code, 200, 'fetch follows the redirect')

  const define = async (type: string) => {
    const schema = { openAPIV3Schema: { type: 'object', properties: { spec: { type } } } }
    const versions = [{ name: 'v1', served: true, storage: true, schema }]
    const spec = { group: 'open.example.com', scope: 'Cluster', names: { plural: 'opens', kind: 'Open' }, versions }
    const metadata = { name: 'opens.open.example.com' }
    const path = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions'
    const crd = { apiVersion: 'apiextensions.k8s.io/v1', kind: 'CustomResourceDefinition', metadata, spec }
    const created = await server.call(path, { body: crd })
    if (created.code === 409)
      await server.call(`${path}/${metadata.name}`, { method: 'PATCH', body: { spec }, type: 'application/merge-patch+json' })
    return urlOf('apis/open.example.com/v1')
  }
  const one = await define('string')
  const two = await define('integer')
  assert.ok(one && two && one !== two)
})

test('OpenAPI 2 has no alternatives and no null, and all its references resolve', async () => {
  const text = JSON.stringify((await server.call('/openapi/v2')).body)
  for (const keyword of ['oneOf', 'anyOf', 'allOf', 'nullable', 'not']) assert.ok(!text.includes(`"${keyword}":`), keyword)
  const references = [...text.matchAll(/"\$ref":"#\/definitions\/([^"]+)"/g)].map(([, name]) => name!)
  const { definitions } = JSON.parse(text) as { definitions: Record<string, unknown> }
  assert.deepEqual(
    references.filter(name => !Object.hasOwn(definitions, name)),
    [],
  )
})

test('operation IDs are unique', async () => {
  type Paths = { paths: Record<string, Record<string, { operationId?: string }>> }
  const { paths } = (await server.call<Paths>('/openapi/v2')).body
  const ids = Object.values(paths).flatMap(item => Object.values(item).flatMap(({ operationId }) => operationId ?? []))
  assert.ok(ids.length > 100)
  assert.equal(new Set(ids).size, ids.length)
})
