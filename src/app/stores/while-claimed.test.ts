import { deepEqual, equal } from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type TestContext, test } from 'node:test'
import { whileClaimed } from './while-claimed.ts'

/** Sends a request whose handler is `handle`; the claim is lost as soon as it runs if `isLost`. */
async function respond(t: TestContext, isLost: boolean, handle: (response: ServerResponse, request: IncomingMessage) => void) {
  const claim = { isClaimed: true, notReady: () => ['another process holds the Lease of the stores'], release: async () => {} }
  const handler = whileClaimed(claim, async (request, response) => {
    claim.isClaimed = !isLost
    handle(response, request)
  })
  const server = createServer((request, response) => void handler(request, response, { user: undefined }))
  t.after(() => server.close())
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const response = await fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}`, { method: 'POST', body: 'x' })
  return { status: response.status, text: await response.text() }
}

const unavailable = {
  status: 503,
  text: '{"error":{"code":"Unavailable","message":"another process holds the Lease of the stores"}}',
}

for (const [name, handle] of [
  ['a response', response => response.writeHead(200, { 'content-length': 6 }).end('stored')],
  ['a response without explicit headers', response => response.end('stored')],
  [
    'a response in several parts',
    response => {
      response.writeHead(200)
      response.write('sto')
      setImmediate(() => response.end('red'))
    },
  ],
] as const satisfies readonly (readonly [string, (response: ServerResponse) => void])[]) {
  test(`${name} of a process that no longer holds the claim is replaced by 503`, async t => {
    deepEqual(await respond(t, true, handle), unavailable)
  })
  test(`${name} is unchanged while the claim is held`, async t => {
    deepEqual(await respond(t, false, handle), { status: 200, text: 'stored' })
  })
}

test('a request without the claim does not reach the handler', async t => {
  let calls = 0
  const claim = { isClaimed: false, notReady: () => ['another process holds the Lease of the stores'], release: async () => {} }
  const handler = whileClaimed(claim, async () => void calls++)
  const server = createServer((request, response) => void handler(request, response, { user: undefined }))
  t.after(() => server.close())
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const response = await fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
  deepEqual({ status: response.status, text: await response.text() }, unavailable)
  equal(calls, 0)
})
