import { equal, ok } from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, get, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { startScriptedServer } from '../../../test/support/scripted-server.ts'
import { createClient } from '../../kubernetes/client/index.ts'
import { logRoutes } from './log-routes.ts'
import type { Call } from './route.ts'

const megabyte = 1024 * 1024

test('a line of 100 MB is passed as it is read: what a browser does not read is not read from the stores', { timeout: 60_000 }, async t => {
  let sent = 0
  const stores = await startScriptedServer(async (_request, response) => {
    response.writeHead(200, { 'content-type': 'text/plain' })
    for (; sent < 100 * megabyte; sent += megabyte) if (!response.write(Buffer.alloc(megabyte, 'x'))) await once(response, 'drain')
    response.end()
  })
  const client = await createClient({ cluster: { server: stores.url } })
  const server = createServer((_request, response) => {
    const call = { session: {}, client: async () => client, path: ['shop', 'app-1'], query: new URLSearchParams(), response }
    void logRoutes['GET logs']?.(call as unknown as Call)
  })
  t.after(async () => {
    server.close()
    server.closeAllConnections()
    await client.close()
    await stores.close()
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const [log] = (await once(get({ port: (server.address() as AddressInfo).port }), 'response')) as [IncomingMessage]
  let before = -1
  while (sent !== before) {
    before = sent
    await sleep(500)
  }
  // The buffers of sockets, and what a stream of the client holds.
  ok(sent < 40 * megabyte, `${sent / megabyte} MB`)
  let read = 0
  for await (const chunk of log) read += (chunk as Buffer).length
  equal(read, 100 * megabyte)
})
