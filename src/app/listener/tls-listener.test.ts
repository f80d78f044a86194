import { equal, match } from 'node:assert/strict'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { Agent, request } from 'node:https'
import { connect, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { connect as connectTls } from 'node:tls'
import { eventually } from '../../../test/support/eventually.ts'
import { startTlsListener, type TlsListenerOptions } from './tls-listener.ts'

/** A listener that accepts the token `valid`, and whose mount /echo requires it. */
async function setUp(t: TestContext, limits: Partial<TlsListenerOptions['limits']>) {
  const dataDir = mkdtempSync(join(tmpdir(), 'oarlock-listener-'))
  const errors: unknown[] = []
  const listener = await startTlsListener({
    role: 'test',
    dataDir,
    listen: { host: '127.0.0.1', port: 0 },
    names: [],
    authenticate: async token => {
      if (token === 'error') throw new Error('unreachable')
      return token === 'valid' ? { name: 'ada', groups: [] } : token === 'bob' ? { name: 'bob', groups: [] } : undefined
    },
    mounts: [
      {
        prefix: '/echo',
        handler: async (_, response, { user }) => void response.writeHead(user ? 200 : 401).end(),
      },
    ],
    notReady: () => [],
    onError: error => errors.push(error),
    limits,
  })
  const port = Number(new URL(listener.url).port)
  const sockets: Socket[] = []
  const agent = new Agent({ ca: listener.caCertificate, keepAlive: true, maxSockets: 1 })
  t.after(async () => {
    agent.destroy()
    for (const socket of sockets) socket.destroy()
    await listener.close()
    rmSync(dataDir, { recursive: true, force: true })
  })
  const open = async (): Promise<Socket> => {
    const socket = connect(port, '127.0.0.1')
    sockets.push(socket)
    socket.on('error', () => {}).resume()
    await once(socket, 'connect')
    return socket
  }
  const openTls = async (head: string): Promise<Socket> => {
    const socket = connectTls({ port, host: '127.0.0.1', ca: listener.caCertificate })
    sockets.push(socket)
    socket.on('error', () => {})
    await once(socket, 'secureConnect')
    socket.write(head)
    return socket
  }
  const get = async (token: string) => {
    const sent = request(`${listener.url}/echo`, { agent, headers: { authorization: `Bearer ${token}` } }).end()
    const [response] = await once(sent, 'response')
    await once(response.resume(), 'end')
    return { code: response.statusCode as number, isSameConnection: sent.reusedSocket }
  }
  return { open, openTls, get, errors }
}

const isClosed = async (socket: Socket) => {
  if (!socket.closed) await once(socket, 'close')
  return true
}

test('closes connections without an authenticated request when there are too many, and no authenticated one', async t => {
  const { open, get } = await setUp(t, { connections: { unauthenticated: 2 } })
  equal((await get('valid')).code, 200)
  const sockets: Socket[] = []
  for (let i = 0; i < 5; i++) sockets.push(await open())
  await eventually(() => sockets.filter(socket => socket.closed).length === 3, 'three to be closed')
  equal((await get('valid')).isSameConnection, true)
  equal(sockets.filter(socket => socket.closed).length, 3)
})

test('closes a connection that sends no TLS handshake in time', async t => {
  const { open } = await setUp(t, { handshakeMs: 50 })
  equal(await isClosed(await open()), true)
})

test('closes the connection of a request without a valid token whose body does not end', async t => {
  const { openTls } = await setUp(t, { unreadBodyMs: 50 })
  const socket = await openTls('POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 9999999999\r\n\r\n{')
  let text = ''
  socket.on('data', chunk => (text += chunk))
  equal(await isClosed(socket), true)
  match(text, /^HTTP\/1\.1 401 /)
})

test('reports one error per interval when tokens cannot be reviewed', async t => {
  const { get, errors } = await setUp(t, {})
  for (let i = 0; i < 3; i++) equal((await get('error')).code, 503)
  equal(errors.length, 1)
})

test('a user with too many connections gets 503 on a new one, and others and health checks are answered', async t => {
  const { openTls, get } = await setUp(t, { connections: { perUser: 1 } })
  const socket = await openTls('GET /echo HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer valid\r\n\r\n')
  await once(socket, 'data')
  equal((await get('valid')).code, 503)
  equal((await get('bob')).code, 200)
  const health = await openTls('GET /healthz HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer valid\r\n\r\n')
  match(String(await once(health, 'data')), /^HTTP\/1\.1 200 /)
  socket.destroy()
  while ((await get('valid')).code === 503) await new Promise(setImmediate)
})
