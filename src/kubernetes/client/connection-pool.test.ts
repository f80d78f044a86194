import { deepEqual, equal, ok, rejects } from 'node:assert/strict'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { test } from 'node:test'
import { eventually } from '../../../test/support/eventually.ts'
import { ConnectionPool, type ConnectionPoolOptions } from './connection-pool.ts'

type Peer = { sockets: Socket[]; requests: string[][]; respond(connection: number, text: string): void }

/** A server that sends nothing on its own: the test sees the requests of each connection and writes the responses. */
async function withPool(run: (pool: ConnectionPool, peer: Peer) => Promise<void>, options: Partial<ConnectionPoolOptions> = {}) {
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
  const pool = new ConnectionPool({
    origin: `http://127.0.0.1:${port}`,
    tls: { rejectUnauthorized: true },
    preferredConnections: 1,
    maxPipelined: 2,
    maxConnections: 2,
    connectTimeoutMs: 1_000,
    keepAliveMs: 10_000,
    maxResponseBytes: 1_000,
    ...options,
  })
  try {
    await run(pool, { sockets, requests, respond: (connection, text) => void sockets[connection]?.write(text) })
  } finally {
    pool.destroy()
    for (const socket of sockets) socket.destroy()
    await new Promise(resolve => server.close(resolve))
  }
}

const get = (path: string, more: object = {}) => ({ method: 'GET', path, headers: {}, timeoutMs: 5_000, ...more })
const ok200 = (body: string, more = '') => `HTTP/1.1 200 OK\r\ncontent-length: ${body.length}\r\n${more}\r\n${body}`

test('fills connections in order, queues further requests, and matches responses to their requests', async () => {
  await withPool(async (pool, peer) => {
    const bodies = ['/a', '/b', '/c', '/d', '/e'].map(path => pool.request(get(path)).then(({ body }) => body))
    await eventually(() => peer.requests.flat().length === 4, 'four requests in flight')
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

test('requests use separate connections before they share one', async () => {
  await withPool(
    async (pool, peer) => {
      const responses = ['/a', '/b', '/c'].map(path => pool.request(get(path)).catch(() => undefined))
      await eventually(() => peer.requests.flat().length === 3, 'three requests in flight')
      deepEqual(peer.requests.map(seen => seen.length).sort(), [1, 2])
      pool.destroy()
      await Promise.all(responses)
    },
    { preferredConnections: 2, maxPipelined: 10, maxConnections: 3 },
  )
})

test('requests of one turn with the same key share a connection that has nothing else; later ones do not wait for them', async () => {
  await withPool(
    async (pool, peer) => {
      const batched = (path: string, name: string) => pool.request(get(path, { batchKey: name })).catch(() => undefined)
      await openConnections(pool, peer, 4)
      const responses = [batched('/a1', 'a'), batched('/b1', 'b'), batched('/a2', 'a'), batched('/b2', 'b'), batched('/a3', 'a')]
      responses.push(pool.request(get('/own')).catch(() => undefined))
      await eventually(() => peer.requests.flat().length === 6, 'one turn')
      deepEqual(
        peer.requests.map(seen => seen.join(' ')),
        ['/a1 /a2 /a3', '/b1 /b2', '/own', ''],
      )
      responses.push(batched('/a4', 'a'))
      await eventually(() => peer.requests[3]?.[0] === '/a4', 'the next turn')
      pool.destroy()
      await Promise.all(responses)
    },
    { preferredConnections: 4, maxPipelined: 10, maxConnections: 4 },
  )
})

/** A pool whose `count` connections are open and idle. */
async function openConnections(pool: ConnectionPool, peer: Peer, count: number): Promise<void> {
  const opening = Array.from({ length: count }, (_, index) => pool.request(get(`/opening-${index}`)))
  await eventually(() => peer.requests.flat().length === count, `${count} connections`)
  for (let index = 0; index < count; index++) peer.respond(index, ok200('x'))
  await Promise.all(opening)
  for (const seen of peer.requests) seen.length = 0
}

test('a batch ends with its turn: a later request with its key does not join what its connection has then', async () => {
  await withPool(
    async (pool, peer) => {
      await openConnections(pool, peer, 2)
      const first = pool.request(get('/a1', { batchKey: 'a' }))
      await eventually(() => peer.requests[0]?.[0] === '/a1', 'the first turn')
      peer.respond(0, ok200('x'))
      await first
      const responses = [get('/other'), get('/a2', { batchKey: 'a' })].map(request => pool.request(request).catch(() => undefined))
      await eventually(() => peer.requests.flat().length === 3, 'a later turn')
      deepEqual(peer.requests, [['/a1', '/other'], ['/a2']])
      pool.destroy()
      await Promise.all(responses)
    },
    { preferredConnections: 2, maxPipelined: 10, maxConnections: 2 },
  )
})

test('a request does not join a batch that was written, although its connection has others to write', async () => {
  await withPool(
    async (pool, peer) => {
      await openConnections(pool, peer, 2)
      const responses: Promise<unknown>[] = []
      const send = (path: string, more: object = {}) => void responses.push(pool.request(get(path, more)).catch(() => undefined))
      const afterWrite = () =>
        queueMicrotask(() => {
          // Shares the connection of /a1, which has as few as the other one.
          send('/other')
          send('/a2', { batchKey: 'a' })
        })
      send('/a1', { batchKey: 'a', beforeSend: afterWrite })
      send('/busy')
      await eventually(() => peer.requests.flat().length === 4, 'all requests')
      deepEqual(peer.requests, [
        ['/a1', '/other'],
        ['/busy', '/a2'],
      ])
      pool.destroy()
      await Promise.all(responses)
    },
    { preferredConnections: 2, maxPipelined: 10, maxConnections: 2 },
  )
})

test('a broken connection fails its requests; after Connection: close the ones behind it are sent again', async () => {
  await withPool(
    async (pool, peer) => {
      const broken = pool.request(get('/a'))
      await eventually(() => peer.requests.flat().length === 1, '/a')
      peer.sockets[0]?.destroy()
      await rejects(broken, (error: NodeJS.ErrnoException) => error.code === 'ERR_CONNECTION_CLOSED' || error.code === 'ECONNRESET')

      const [b, c] = [pool.request(get('/b')), pool.request(get('/c'))]
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

test('an aborted request rejects immediately and its response is discarded; a silent connection is closed', async () => {
  await withPool(async (pool, peer) => {
    const stop = new AbortController()
    const aborted = pool.request(get('/a', { signal: stop.signal }))
    const next = pool.request(get('/b'))
    await eventually(() => peer.requests.flat().length === 2, 'both')
    stop.abort(new Error('enough'))
    await rejects(aborted, /enough/)
    peer.respond(0, ok200('A') + ok200('B'))
    equal((await next).body, 'B')

    const silent = pool.request(get('/c', { timeoutMs: 20 }))
    const behind = pool.request(get('/d'))
    await Promise.all([
      rejects(silent, (error: NodeJS.ErrnoException) => error.code === 'ERR_RESPONSE_TIMEOUT'),
      rejects(behind, (error: NodeJS.ErrnoException) => error.code === 'ERR_CONNECTION_CLOSED'),
    ])
  })
})

test('a request that is aborted while its connection opens is never sent, and those behind it are', async () => {
  await withPool(
    async (pool, peer) => {
      const stop = new AbortController()
      const aborted = pool.request(get('/a', { signal: stop.signal }))
      // Waits for the only place on the only connection.
      const queued = pool.request(get('/b'))
      stop.abort(new Error('enough'))
      await rejects(aborted, /enough/)
      await eventually(() => peer.requests.flat().length > 0, 'a request')
      peer.respond(0, ok200('B'))
      equal((await queued).body, 'B')
      deepEqual(peer.requests, [['/b']])
    },
    { maxConnections: 1, maxPipelined: 1 },
  )
})

test('a request whose sender has lost its right to write while the connection opens is not sent, and rejects with the reason', async () => {
  await withPool(async (pool, peer) => {
    let mayWrite = true
    const beforeSend = () => {
      if (!mayWrite) throw new Error('not the owner')
    }
    const refused = pool.request(get('/a', { beforeSend }))
    const other = pool.request(get('/b'))
    mayWrite = false
    await rejects(refused, /not the owner/)
    await eventually(() => peer.requests.flat().length > 0, 'a request')
    peer.respond(0, ok200('B'))
    equal((await other).body, 'B')
    // On the open connection as well.
    await rejects(pool.request(get('/c', { beforeSend })), /not the owner/)
    mayWrite = true
    const sent = pool.request(get('/d', { beforeSend }))
    await eventually(() => peer.requests.flat().length === 2, '/d')
    peer.respond(0, ok200('D'))
    equal((await sent).body, 'D')
    deepEqual(peer.requests, [['/b', '/d']])
  })
})

test('a refused connection fails its requests with the reason, and a header cannot contain a line break', async () => {
  await withPool(async pool => {
    await rejects(pool.request(get('/a b')), /percent-encoded/)
    await rejects(pool.request(get('/a', { headers: { x: 'y\r\nz: 1' } })), /header x/)
  })
  const unreachable = new ConnectionPool({
    origin: 'http://127.0.0.1:1',
    tls: { rejectUnauthorized: true },
    preferredConnections: 1,
    maxPipelined: 2,
    maxConnections: 1,
    connectTimeoutMs: 1_000,
    keepAliveMs: 1_000,
    maxResponseBytes: 10,
  })
  const codes = await Promise.all(
    [unreachable.request(get('/a')), unreachable.request(get('/b')), unreachable.request(get('/c'))].map(each =>
      each.catch(error => error.code),
    ),
  )
  ok(
    codes.every(code => code === 'ECONNREFUSED'),
    codes.join(),
  )
  unreachable.destroy()
})

test('a drained pool sends its queued requests, then closes its connections', async () => {
  await withPool(
    async (pool, peer) => {
      const bodies = ['/a', '/b', '/c'].map(path => pool.request(get(path)).then(({ body }) => body))
      await eventually(() => peer.requests.flat().length === 1, '/a')
      pool.drain()
      let isEnded = false
      peer.sockets[0]?.on('close', () => {
        isEnded = true
      })
      for (const [index, body] of ['A', 'B', 'C'].entries()) {
        await eventually(() => peer.requests.flat().length === index + 1, `request ${index}`)
        peer.respond(0, ok200(body))
      }
      deepEqual(await Promise.all(bodies), ['A', 'B', 'C'])
      await eventually(() => isEnded, 'the connection to close')
    },
    { maxConnections: 1, maxPipelined: 1 },
  )
})
