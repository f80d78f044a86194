import { equal, rejects } from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { test } from 'node:test'
import { createClient } from '../../kubernetes/client/index.ts'
import { startTestServer } from '../../kubernetes/testing/index.ts'
import { authenticateByTokenReview } from '../delegated-auth/authenticate-by-token-review.ts'
import { MovingReview } from './moving-review.ts'

/** A partition that accepts requests and does not answer them. */
async function silentPartition() {
  const server = createServer()
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const client = await createClient({ cluster: { server: `http://127.0.0.1:${(server.address() as AddressInfo).port}` } })
  return { server, client, [Symbol.dispose]: () => server.close() && server.closeAllConnections() }
}

test('a review in progress when the address of its partition changes is answered by the partition at the new one', async () => {
  await using api = await startTestServer()
  using former = await silentPartition()
  const moving = new MovingReview(authenticateByTokenReview(former.client))
  const asked = once(former.server, 'request')
  const result = moving.review(api.server.issueToken({ name: 'ann', groups: [], ttlMs: 60_000 }))
  await asked
  moving.move(authenticateByTokenReview(api.client))
  await former.client.close()
  equal((await result)?.name, 'ann')
})

test('a review fails if the connections are closed and the partition has no new address', async () => {
  using partition = await silentPartition()
  const moving = new MovingReview(authenticateByTokenReview(partition.client))
  const asked = once(partition.server, 'request')
  const failure = rejects(moving.review('token'))
  await asked
  await partition.client.close()
  await failure
})

test('a token that was valid at the former address stays valid while the partition does not answer at the new one', async () => {
  await using api = await startTestServer()
  const moving = new MovingReview(authenticateByTokenReview(api.client))
  const token = api.server.issueToken({ name: 'ann', groups: [], ttlMs: 60_000 })
  equal((await moving.review(token))?.name, 'ann')
  const unreachable = await createClient({ cluster: { server: 'http://127.0.0.1:1' } })
  moving.move(authenticateByTokenReview(unreachable))
  equal((await moving.review(token))?.name, 'ann')
  await rejects(moving.review(`${token}x`))
  await unreachable.close()
})
