import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { startTestServer, type TestServer } from './server.testing.ts'

let server: TestServer
before(async () => {
  server = await startTestServer()
})
after(() => server.close())

describe('discovery', () => {
  test('serves aggregated discovery with an ETag', async () => {
    const headers = { accept: 'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json' }
    const first = await server.call<string>('/apis', { headers })
    assert.equal(first.headers.get('content-type'), 'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList')
    const again = await server.call('/apis', { headers: { ...headers, 'if-none-match': first.headers.get('etag')! } })
    assert.equal(again.code, 304)
  })

  test('OpenAPI v3 has schemas and a patch that validates fields', async () => {
    const { body: index } = await server.call<{ paths: Record<string, { serverRelativeURL: string }> }>('/openapi/v3')
    type Document = {
      paths: Record<string, { patch?: { parameters: { name: string }[] } }>
      components: { schemas: Record<string, object> }
    }
    const { body } = await server.call<Document>(index.paths['api/v1']!.serverRelativeURL)
    assert.ok(body.components.schemas['io.k8s.api.core.v1.ConfigMap'])
    const patch = body.paths['/api/v1/namespaces/{namespace}/configmaps/{name}']?.patch
    assert.ok(patch?.parameters.some(parameter => parameter.name === 'fieldValidation'))
  })
})
