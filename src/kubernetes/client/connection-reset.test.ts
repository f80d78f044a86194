import { deepEqual, equal, ok, rejects } from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { createServer as createTlsServer } from 'node:tls'
import { eventually } from '../../../test/support/eventually.ts'
import { makeCertificate } from '../../../test/support/make-certificate.ts'
import { ConnectionPool } from './connection-pool.ts'

const directory = mkdtempSync(join(tmpdir(), 'oarlock-reset-'))
after(() => rmSync(directory, { recursive: true, force: true }))
const { cert, key } = makeCertificate(directory)

/** A server whose connections read nothing until `resume`, as one behind a network that is cut: most of a large request stays with the system of the client. */
async function withStalledServer(
  protocol: 'http' | 'https',
  run: (
    pool: ConnectionPool,
    server: { connections: Socket[]; received(): number; requests(): number; errors: string[]; resume(): void; ended: Promise<void> },
  ) => Promise<void>,
) {
  const connections: Socket[] = []
  const errors: string[] = []
  let received = 0
  let requests = 0
  const ended = Promise.withResolvers<void>()
  const onSocket = (socket: Socket) => {
    socket.pause()
    connections.push(socket)
    socket.on('data', data => {
      received += data.length
      requests += [...String(data).matchAll(/^[A-Z]+ \S+ HTTP/gm)].length
    })
    socket.on('error', error => void errors.push((error as NodeJS.ErrnoException).code ?? error.message))
    socket.on('close', () => ended.resolve())
  }
  const server: Server = protocol === 'http' ? createServer(onSocket) : createTlsServer({ cert, key }, onSocket)
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const pool = new ConnectionPool({
    origin: `${protocol}://127.0.0.1:${(server.address() as AddressInfo).port}`,
    tls: { rejectUnauthorized: true, ca: cert },
    preferredConnections: 1,
    maxPipelined: 8,
    maxConnections: 1,
    connectTimeoutMs: 5_000,
    keepAliveMs: 10_000,
    maxResponseBytes: 1_000,
  })
  try {
    const resume = () => void connections[0]?.resume()
    await run(pool, { connections, received: () => received, requests: () => requests, errors, resume, ended: ended.promise })
  } finally {
    pool.destroy()
    for (const socket of connections) socket.destroy()
    await new Promise(resolve => server.close(resolve))
  }
}

const bodyBytes = 900_000
const write = (more: object) => ({ method: 'PATCH', path: '/a', headers: {}, timeoutMs: 5_000, body: 'x'.repeat(bodyBytes), ...more })

for (const protocol of ['http', 'https'] as const) {
  test(`${protocol}: when the right to write ends, what the system has not sent of a write without a response is never sent`, async () => {
    await withStalledServer(protocol, async (pool, server) => {
      const right = new AbortController()
      const lost = pool.request(write({ signal: right.signal, resetSignal: right.signal }))
      const other = pool.request({ method: 'GET', path: '/b', headers: {}, timeoutMs: 5_000 })
      const codes = Promise.all([lost, other].map(each => each.then(String, error => error.code)))
      await eventually(() => server.connections.length > 0, 'a connection')
      // The client writes in the turn in which it sees its connection open, which may be later.
      await new Promise(resolve => setTimeout(resolve, 200))
      right.abort()
      await rejects(lost)
      // Behind it on the same connection: as after any broken connection.
      equal((await codes)[1], 'ECONNRESET')
      server.resume()
      await server.ended
      ok(server.received() < bodyBytes, `${server.received()} bytes received`)
      deepEqual(server.errors, ['ECONNRESET'])
    })
  })

  test(`${protocol}: a right that ends after the response leaves the connection open`, async () => {
    await withStalledServer(protocol, async (pool, server) => {
      const right = new AbortController()
      const done = pool.request(write({ resetSignal: right.signal }))
      await eventually(() => server.connections.length > 0, 'a connection')
      server.resume()
      await eventually(() => server.received() > bodyBytes, 'the request')
      const respond = () => server.connections[0]?.write('HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n')
      respond()
      equal((await done).status, 200)
      const next = pool.request({ method: 'GET', path: '/b', headers: {}, timeoutMs: 5_000 })
      right.abort()
      await eventually(() => server.requests() === 2, 'the next request')
      respond()
      equal((await next).status, 200)
      deepEqual([server.connections.length, server.errors], [1, []])
    })
  })
}
