import assert from 'node:assert/strict'
import { once } from 'node:events'
import { after, before, test } from 'node:test'
import { connect } from 'node:tls'
import fc from 'fast-check'
import { encodeRequest, malformedRequests } from '../../../test/reliability/malformed-requests.ts'
import { RawClient } from '../../../test/reliability/raw-client.ts'
import { startTestServer, type TestServer } from './server.testing.ts'

let server: TestServer
before(async () => {
  server = await startTestServer()
})
after(() => server.close())

/** Unlike test/reliability/fuzz.test.ts, sends requests one by one in this process, so that fast-check can shrink a failing one. */
test('malformed requests neither end the server nor cause a 500', async () => {
  const { caCertificate, port } = server.server
  const client = new RawClient(() => connect({ host: '127.0.0.1', port, ca: caCertificate }).on('error', () => {}))
  await fc.assert(
    fc.asyncProperty(malformedRequests, async request => {
      const { status, text } = await client.send(encodeRequest(request, server.adminToken))
      assert.ok(status < 500 || status === 501 || status === 504, text.slice(0, 1_000))
    }),
    { numRuns: Number(process.env.OARLOCK_FUZZ_RUNS ?? 600) },
  )
  client.close()
  assert.equal((await server.call('/healthz')).code, 200)
})

test('rejects bodies that are nested too deeply, including the results of patches', async () => {
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

test('the server keeps serving after invalid HTTP and aborted connections', async () => {
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
