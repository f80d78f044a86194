import { deepEqual, equal, ok, rejects } from 'node:assert/strict'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { test } from 'node:test'
import { eventually } from '../../../test/support/eventually.ts'
import { ConnectionPool, type PipelineOptions } from './connection-pool.ts'

type Peer = { sockets: Socket[]; requests: string[][]; respond(connection: number, text: string): void }

/** A server that answers nothing by itself: the test sees the requests of each connection and writes the answers. */
async function withPipeline(run: (pipeline: ConnectionPool, peer: Peer) => Promise<void>, options: Partial<PipelineOptions> = {}) {
  const sockets: Socket[] = []
  const requests: string[][] = []
  const server = createServer(socket => {
    const seen: string[] = []
    sockets.push(socket)
    requests.push(seen)
    socket.on('error', () => undefined)
    socket.on('data', data => void seen.push(...[...String(data).matchAll(/^[A-Z]+ (\S+) HTTP/gm)].map(([, path]) => path as string)))
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  const pipeline = new ConnectionPool({
    origin: `http://127.0.0.1:${port}`,
    tls: { rejectUnauthorized: true },
    spread: 1,
    depth: 2,
    maxConnections: 2,
    connectTimeoutMs: 1_000,
    keepAliveMs: 10_000,
    maxAnswerBytes: 1_000,
    ...options,
  })
  try {
    await run(pipeline, { sockets, requests, respond: (connection, text) => void sockets[connection]?.write(text) })
  } finally {
    pipeline.destroy()
    for (const socket of sockets) socket.destroy()
    await new Promise(resolve => server.close(resolve))
  }
}

const get = (path: string, more: object = {}) => ({ method: 'GET', path, headers: {}, timeoutMs: 5_000, ...more })
const ok200 = (body: string, more = '') => `HTTP/1.1 200 OK\r\ncontent-length: ${body.length}\r\n${more}\r\n${body}`

test('connections are filled in order, further requests wait, and answers go to whom they belong', async () => {
  await withPipeline(async (pipeline, peer) => {
    const bodies = ['/a', '/b', '/c', '/d', '/e'].map(path => pipeline.exchange(get(path)).then(({ body }) => body))
    await eventually(() => peer.requests.flat().length === 4, 'four under way')
    deepEqual([...peer.requests].sort(), [
      ['/a', '/b'],
      ['/c', '/d'],
    ])
    const first = peer.requests.findIndex(seen => seen[0] === '/a')
    peer.respond(first, ok200('A') + ok200('B'))
    await eventually(() => peer.requests.flat().includes('/e'), 'the fifth')
    peer.respond(1 - first, ok200('C') + ok200('D'))
    peer.respond(first, ok200('E'))
    deepEqual(await Promise.all(bodies), ['A', 'B', 'C', 'D', 'E'])
  })
})

test('requests spread over connections before they wait for one another', async () => {
  await withPipeline(
    async (pipeline, peer) => {
      const answers = ['/a', '/b', '/c'].map(path => pipeline.exchange(get(path)).catch(() => undefined))
      await eventually(() => peer.requests.flat().length === 3, 'three under way')
      deepEqual(peer.requests.map(seen => seen.length).sort(), [1, 2])
      pipeline.destroy()
      await Promise.all(answers)
    },
    { spread: 2, depth: 10, maxConnections: 3 },
  )
})

test('a cut fails what was sent; after Connection: close what was behind it goes another way', async () => {
  await withPipeline(
    async (pipeline, peer) => {
      const cut = pipeline.exchange(get('/a'))
      await eventually(() => peer.requests.flat().length === 1, '/a')
      peer.sockets[0]?.destroy()
      await rejects(cut, (error: NodeJS.ErrnoException) => error.code === 'UND_ERR_SOCKET' || error.code === 'ECONNRESET')

      const [b, c] = [pipeline.exchange(get('/b')), pipeline.exchange(get('/c'))]
      await eventually(() => peer.requests.flat().length === 3, '/b and /c')
      peer.respond(1, ok200('B', 'connection: close\r\n'))
      equal((await b).body, 'B')
      await eventually(() => peer.requests.length === 3, 'another connection')
      await eventually(() => peer.requests[2]?.length === 1, '/c again')
      peer.respond(2, ok200('C'))
      equal((await c).body, 'C')
    },
    { maxConnections: 1 },
  )
})

test('an aborted request rejects at once and its answer is dropped; a silent server is given up', async () => {
  await withPipeline(async (pipeline, peer) => {
    const stop = new AbortController()
    const aborted = pipeline.exchange(get('/a', { signal: stop.signal }))
    const next = pipeline.exchange(get('/b'))
    await eventually(() => peer.requests.flat().length === 2, 'both')
    stop.abort(new Error('enough'))
    await rejects(aborted, /enough/)
    peer.respond(0, ok200('A') + ok200('B'))
    equal((await next).body, 'B')

    const silent = pipeline.exchange(get('/c', { timeoutMs: 20 }))
    const behind = pipeline.exchange(get('/d'))
    await Promise.all([
      rejects(silent, (error: NodeJS.ErrnoException) => error.code === 'UND_ERR_HEADERS_TIMEOUT'),
      rejects(behind, (error: NodeJS.ErrnoException) => error.code === 'UND_ERR_SOCKET'),
    ])
  })
})

test('a refused connection fails its requests with the reason, and headers cannot break out of their line', async () => {
  await withPipeline(async pipeline => {
    await rejects(pipeline.exchange(get('/a b')), /percent-encoded/)
    await rejects(pipeline.exchange(get('/a', { headers: { x: 'y\r\nz: 1' } })), /header x/)
  })
  const closed = new ConnectionPool({
    origin: 'http://127.0.0.1:1',
    tls: { rejectUnauthorized: true },
    spread: 1,
    depth: 2,
    maxConnections: 1,
    connectTimeoutMs: 1_000,
    keepAliveMs: 1_000,
    maxAnswerBytes: 10,
  })
  const codes = await Promise.all(
    [closed.exchange(get('/a')), closed.exchange(get('/b')), closed.exchange(get('/c'))].map(each => each.catch(error => error.code)),
  )
  ok(
    codes.every(code => code === 'ECONNREFUSED'),
    codes.join(),
  )
  closed.destroy()
})

test('what waits for a connection when its pipeline is retired is still sent; then the connections end', async () => {
  await withPipeline(
    async (pipeline, peer) => {
      const bodies = ['/a', '/b', '/c'].map(path => pipeline.exchange(get(path)).then(({ body }) => body))
      await eventually(() => peer.requests.flat().length === 1, '/a')
      pipeline.retire()
      let isEnded = false
      peer.sockets[0]?.on('close', () => {
        isEnded = true
      })
      for (const [index, body] of ['A', 'B', 'C'].entries()) {
        await eventually(() => peer.requests.flat().length === index + 1, `request ${index}`)
        peer.respond(0, ok200(body))
      }
      deepEqual(await Promise.all(bodies), ['A', 'B', 'C'])
      await eventually(() => isEnded, 'the end')
    },
    { maxConnections: 1, depth: 1 },
  )
})
