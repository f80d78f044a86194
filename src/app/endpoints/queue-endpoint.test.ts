import { deepEqual, equal, match } from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { test } from 'node:test'
import { Registry } from 'prom-client'
import { silentLog } from '../../kubernetes/controller/index.ts'
import { startTestServer } from '../../kubernetes/testing/index.ts'
import { makeControllers } from '../controllers/controllers.ts'
import { createQueueHandler, queueResponse } from './queue-endpoint.ts'

test('a process that does not lead answers 503 on both addresses, instead of an empty queue', async () => {
  await using api = await startTestServer()
  const controllers = makeControllers({
    ...{ client: api.client, allowPaths: [], cacheDir: '', registry: new Registry(), log: silentLog },
    removeStackData: async () => undefined,
  })
  const { queue } = controllers.dispatch
  equal(queue({}), undefined)

  const plain = queueResponse('/queue', queue)
  equal(plain.status, 503)
  match(JSON.stringify(plain.body), /another process leads/)

  const handler = createQueueHandler(api.client, queue)
  const admin = { name: 'ada', groups: ['system:masters'] }
  const server = createServer((request, response) => void handler(request, response, { user: admin }))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const response = await fetch(`http://127.0.0.1:${port}/queue`)
  equal(response.status, 503)
  equal(response.headers.get('retry-after'), '1')
  const { reason, message } = (await response.json()) as { reason: string; message: string }
  deepEqual({ reason, message }, { reason: 'ServiceUnavailable', message: 'another process leads, or none yet' })
  server.close()
})
