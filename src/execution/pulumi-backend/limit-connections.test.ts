import { deepEqual, equal } from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { type TestContext, test } from 'node:test'
import { limitConnections } from './limit-connections.ts'
import { accessToken, cliUserAgent, createPulumiFixture, devPath } from './pulumi-client.testing.ts'

async function open(t: TestContext, max: number) {
  const waiting: ServerResponse[] = []
  const server = createServer((req, res) => {
    if (req.url === '/wait') waiting.push(res)
    else res.end('done')
  })
  limitConnections(server, max)
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  t.after(async () => {
    server.closeAllConnections()
    await new Promise(resolve => server.close(resolve))
  })
  return { port: (server.address() as AddressInfo).port, waiting }
}

async function connectTo(t: TestContext, port: number): Promise<Socket> {
  const socket = connect(port, '127.0.0.1')
  socket.on('error', () => {})
  t.after(() => socket.destroy())
  await once(socket, 'connect')
  return socket
}

const closed = (socket: Socket) => (socket.closed ? Promise.resolve() : once(socket.resume(), 'close'))

async function get(socket: Socket, path: string): Promise<string> {
  socket.write(`GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`)
  const [data] = await once(socket, 'data')
  return String(data)
}

test('a further connection closes the one that is idle for the longest time, also one that never sent a request', async t => {
  const { port } = await open(t, 2)
  const [first, second] = [await connectTo(t, port), await connectTo(t, port)]
  equal((await get(second, '/')).includes('done'), true)
  const third = await connectTo(t, port)
  await closed(first)
  equal((await get(third, '/')).includes('done'), true)
  equal((await get(second, '/')).includes('done'), true)
  const fourth = await connectTo(t, port)
  await closed(third)
  equal((await get(fourth, '/')).includes('done'), true)
  equal((await get(second, '/')).includes('done'), true)
})

test('a connection with a request in progress is not closed, and a further one is if all have one', async t => {
  const { port, waiting } = await open(t, 2)
  const busy = [await connectTo(t, port), await connectTo(t, port)]
  const responses = busy.map(socket => get(socket, '/wait'))
  while (waiting.length < 2) await new Promise(resolve => setTimeout(resolve, 5))
  await closed(await connectTo(t, port))
  const [first] = waiting as [ServerResponse]
  const isIdle = once(first, 'close')
  first.end('one')
  await isIdle
  // The connection of the answer that has ended is idle.
  const next = await connectTo(t, port)
  equal((await get(next, '/')).includes('done'), true)
  waiting[1]?.end('two')
  deepEqual(
    (await Promise.all(responses)).map(text => /one|two/.exec(text)?.[0]),
    ['one', 'two'],
  )
})

test('idle connections of the program do not lock the CLI out', async t => {
  const { url, call } = await createPulumiFixture(t)
  const idle = await Promise.all(Array.from({ length: 200 }, () => connectTo(t, Number(new URL(url).port))))
  equal((await call('GET', devPath, { token: accessToken, headers: { 'user-agent': cliUserAgent } })).status, 200)
  equal(idle.length, 200)
})
