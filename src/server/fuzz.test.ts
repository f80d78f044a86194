import assert from 'node:assert/strict'
import { once } from 'node:events'
import { after, before, test } from 'node:test'
import { connect } from 'node:tls'
import fc from 'fast-check'
import { startTestServer, type TestServer } from './test-server.ts'

let server: TestServer
before(async () => {
  server = await startTestServer()
})
after(() => server.close())

const word = fc.constantFrom(
  'api',
  'apis',
  'v1',
  'namespaces',
  'default',
  'configmaps',
  'events',
  'secrets',
  'events.k8s.io',
  'a',
  '__proto__',
  'constructor',
  'status',
  'finalize',
  '',
  '%00',
  '%zz',
  '%2f',
  '..',
  'customresourcedefinitions',
  'apiextensions.k8s.io',
  'leases',
  'openapi',
  'v3',
)
const value = fc.oneof(
  fc.constantFrom(
    'true',
    'false',
    '0',
    '1',
    '-1',
    '',
    'All',
    'NotOlderThan',
    'Exact',
    'a=b',
    'a in (b',
    '!a',
    '9'.repeat(30),
    'metadata.name=a',
  ),
  fc.string({ maxLength: 12 }),
)
const parameter = fc.constantFrom(
  'limit',
  'continue',
  'labelSelector',
  'fieldSelector',
  'resourceVersion',
  'resourceVersionMatch',
  'sendInitialEvents',
  'fieldManager',
  'force',
  'dryRun',
  'fieldValidation',
  'propagationPolicy',
  'includeObject',
)
const metadata = fc.record(
  {
    name: fc.constantFrom('a', '', 'A', 'x'.repeat(300), 5, null),
    labels: fc.jsonValue(),
    finalizers: fc.jsonValue(),
    ownerReferences: fc.jsonValue(),
    managedFields: fc.jsonValue(),
    resourceVersion: fc.constantFrom('', '1', 5, null),
  },
  { requiredKeys: [] },
)
const body = fc.oneof(
  fc.jsonValue().map(json => JSON.stringify(json)),
  fc
    .record(
      {
        metadata: fc.oneof(metadata, fc.jsonValue()),
        data: fc.jsonValue(),
        spec: fc.jsonValue(),
        status: fc.jsonValue(),
        apiVersion: fc.constantFrom('v1', 'x', 5),
        kind: fc.constantFrom('ConfigMap', 'Secret', 5),
      },
      { requiredKeys: [] },
    )
    .map(json => JSON.stringify(json)),
  fc
    .array(
      fc.record(
        {
          op: fc.constantFrom('add', 'remove', 'replace', 'move', 'copy', 'test', 'x'),
          path: fc.constantFrom('/metadata', '/metadata/labels', '', '/data/a', '/__proto__/x', '/metadata/name', 'x'),
          from: fc.constantFrom('/metadata', '', '/data'),
          value: fc.jsonValue(),
        },
        { requiredKeys: ['op'] },
      ),
    )
    .map(json => JSON.stringify(json)),
  fc.string(),
)
const type = fc.constantFrom(
  'application/json',
  'application/yaml',
  'application/json-patch+json',
  'application/merge-patch+json',
  'application/strategic-merge-patch+json',
  'application/apply-patch+yaml',
  'application/vnd.kubernetes.protobuf',
  'text/plain',
)
const accept = fc.constantFrom(
  '*/*',
  'application/json',
  'application/yaml',
  'application/json;as=Table;g=meta.k8s.io;v=v1',
  'application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1',
  'x',
  ';;,',
)
const mapPath = fc.constantFrom(
  '/api/v1/namespaces/default/configmaps',
  '/api/v1/namespaces/default/configmaps/a',
  '/api/v1/namespaces/default/secrets/a',
  '/api/v1/namespaces/default/events/a',
  '/apis/events.k8s.io/v1/namespaces/default/events/a',
  '/api/v1/namespaces/a',
  '/api/v1/namespaces/a/status',
  '/apis/coordination.k8s.io/v1/namespaces/default/leases/a',
  '/apis/apiextensions.k8s.io/v1/customresourcedefinitions',
  '/apis/apiextensions.k8s.io/v1/customresourcedefinitions/a',
)
const path = fc.oneof(
  mapPath,
  fc.array(word, { maxLength: 8 }).map(words => `/${words.join('/')}`),
)
const request = fc.record({
  method: fc.constantFrom('GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'HEAD'),
  path,
  query: fc.array(fc.tuple(parameter, value), { maxLength: 3 }),
  body,
  type,
  accept,
})

test('nothing that a client sends ends the server or is a 500', async () => {
  await fc.assert(
    fc.asyncProperty(request, async ({ method, path, query, body, type, accept }) => {
      const search = query.length > 0 ? `?${new URLSearchParams(query)}` : ''
      const isRead = method === 'GET' || method === 'HEAD'
      const { code, body: answer } = await server.call(path + search, {
        method,
        body: isRead ? undefined : body,
        type,
        headers: { accept },
      })
      assert.ok(code < 500 || code === 504, `${code}: ${JSON.stringify(answer)}`)
    }),
    { numRuns: Number(process.env.OARLOCK_FUZZ_RUNS ?? 600) },
  )
  assert.equal((await server.call('/healthz')).code, 200)
})

test('bodies that nest deeper than anybody can walk are refused, one by one and patch on patch', async () => {
  const nested = (levels: number) => `${'{"a":'.repeat(levels)}1${'}'.repeat(levels)}`
  const secrets = '/api/v1/namespaces/default/secrets'
  const definition = (levels: number) =>
    `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"deep","annotations":${nested(levels)}},"data":{}}`
  const json = 'application/json'
  for (const levels of [2_000, 100_000]) {
    for (const [method, path, type, body] of [
      ['POST', secrets, json, definition(levels)],
      ['PATCH', `${secrets}/deep`, 'application/merge-patch+json', nested(levels)],
      ['PATCH', `${secrets}/deep`, 'application/strategic-merge-patch+json', nested(levels)],
      ['PATCH', `${secrets}/deep`, 'application/json-patch+json', `[{"op":"add","path":"/data","value":${nested(levels)}}]`],
      ['PATCH', `${secrets}/deep?fieldManager=x`, 'application/apply-patch+yaml', definition(levels)],
    ] as const) {
      const { code, body: answer } = await server.call(path, { method, body, type })
      assert.equal(code, 400, `${method} ${type} ${levels}: ${JSON.stringify(answer)}`)
    }
  }
})

test('bytes that are no HTTP, and connections given up half-way, leave the server well', async () => {
  const open = async (text: string) => {
    const socket = connect({ host: '127.0.0.1', port: server.server.port, ca: server.server.caCertificate })
    await once(socket, 'secureConnect')
    socket.on('error', () => {})
    socket.write(text)
    return socket
  }
  const garbage = await open('\0\x01\x02 this is not HTTP\r\n\r\n')
  await once(garbage.resume(), 'close')
  for (const text of [
    'GET /api HTTP/1.1\r\nHost: x\r\n',
    `POST /api/v1/namespaces HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${server.adminToken}\r\nContent-Length: 100\r\n\r\n{"half":`,
    `GET /api/v1/configmaps?watch=1 HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${server.adminToken}\r\n\r\n`,
  ]) {
    const socket = await open(text)
    socket.destroy()
    await once(socket, 'close')
  }
  assert.equal((await server.call('/healthz')).code, 200)
})
