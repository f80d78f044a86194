import { equal, ok } from 'node:assert/strict'
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { type TestContext, test } from 'node:test'
import { joinConnections } from './join-connections.ts'

const none = Buffer.alloc(0)

/** Two clients whose connections are joined, and the ends of them that are. */
async function setUp(t: TestContext, lingerMs?: number) {
  const server = createServer({ allowHalfOpen: false }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const open = async () => {
    const client = connect({ host: '127.0.0.1', port, allowHalfOpen: true })
    client.on('error', () => {})
    const [accepted] = (await once(server, 'connection')) as [Socket]
    return { client, accepted }
  }
  const [a, b] = [await open(), await open()]
  t.after(() => {
    for (const { client, accepted } of [a, b]) for (const each of [client, accepted]) each.destroy()
    server.close()
  })
  joinConnections({ socket: a.accepted, head: Buffer.from('head of a ') }, { socket: b.accepted, head: none }, lingerMs)
  return { a, b }
}

async function textOf(socket: Socket): Promise<string> {
  let text = ''
  socket.on('data', data => (text += data)).resume()
  await once(socket, 'end')
  return text
}

test('each direction ends alone, and what was read before is passed first', async t => {
  const { a, b } = await setUp(t)
  a.client.end('and the rest')
  equal(await textOf(b.client), 'head of a and the rest')
  b.client.end('answer after the end')
  equal(await textOf(a.client), 'answer after the end')
  for (const { accepted } of [a, b]) if (!accepted.closed) await once(accepted, 'close')
})

test('a connection that breaks closes the other one', async t => {
  const { a, b } = await setUp(t)
  b.client.resume()
  a.client.resetAndDestroy()
  await once(b.client, 'end')
  ok(b.accepted.destroyed)
})

test('what a slow reader has not read is not lost when the other end closes', async t => {
  const { a, b } = await setUp(t)
  const text = 'x'.repeat(4_000_000)
  b.client.pause()
  a.client.end(text)
  await once(a.accepted, 'data')
  equal((await textOf(b.client)).length, 'head of a '.length + text.length)
})

test('without data, a connection of which one direction has ended is closed', async t => {
  const { a, b } = await setUp(t, 20)
  b.client.resume()
  a.client.resume()
  a.client.end()
  await once(b.client, 'end')
  await once(a.client, 'close')
  // The other one closes after what was sent to it.
  if (!b.accepted.destroyed) await once(b.accepted, 'close')
  ok(b.accepted.destroyed)
})
