import { deepEqual, equal, rejects } from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, type TestContext, test } from 'node:test'
import { createServer, type TLSSocket } from 'node:tls'
import { makeCertificate } from '../../../test/support/make-certificate.ts'
import { fetchWithCa } from './fetch-with-ca.ts'

const directory = mkdtempSync(join(tmpdir(), 'oarlock-fetch-'))
after(() => rmSync(directory, { recursive: true, force: true }))
const { key, cert } = makeCertificate(directory)

/** Fetches from a server with TLS that answers each request with these bytes, and then does what `finish` does with the connection. */
async function fetchBytes(t: TestContext, bytes: string, finish: (socket: TLSSocket) => void = () => {}): Promise<Response> {
  const sockets = new Set<TLSSocket>()
  const server = createServer({ key, cert }, socket => {
    sockets.add(socket)
    socket.on('error', () => {})
    socket.on('data', () => socket.write(bytes, 'latin1', () => finish(socket)))
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  t.after(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  const { port } = server.address() as AddressInfo
  return await fetchWithCa(cert)(`https://localhost:${port}/`, { method: 'GET', headers: {} })
}

const close = (socket: TLSSocket) => socket.destroy()
const outOfRange = (status: number) => ({
  message: new RegExp(`^the answer of localhost:\\d+ has status ${status}: only 200 to 599 are allowed$`),
})
const connectionClosed = { code: 'ECONNRESET' }

for (const { name, bytes, finish, error } of [
  { name: 'the status 101', bytes: 'HTTP/1.1 101 Switching Protocols\r\nContent-Length: 0\r\n\r\n', error: outOfRange(101) },
  {
    name: 'an upgrade that was not requested',
    bytes: 'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: other\r\n\r\n',
    error: { message: /^the answer of localhost:\d+ switches to another protocol, which was not requested$/ },
  },
  { name: 'the status 600', bytes: 'HTTP/1.1 600 Other\r\nContent-Length: 2\r\n\r\n{}', error: outOfRange(600) },
  { name: 'the status 999', bytes: 'HTTP/1.1 999 Other\r\nContent-Length: 2\r\n\r\n{}', error: outOfRange(999) },
  { name: 'a status that is no number', bytes: 'HTTP/1.1 abc Other\r\n\r\n', error: { code: 'HPE_INVALID_STATUS' } },
  { name: 'a control character in a header', bytes: 'HTTP/1.1 200 OK\r\nA: b\0c\r\n\r\n', error: { code: 'HPE_INVALID_HEADER_TOKEN' } },
  {
    name: 'a chunk of a length that is no number',
    bytes: 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n{\r\nx\r\n',
    error: { code: 'HPE_INVALID_CHUNK_SIZE' },
  },
  { name: 'a connection that is closed before the answer', bytes: '', finish: close, error: connectionClosed },
  {
    name: 'a connection that is closed within the headers',
    bytes: 'HTTP/1.1 200 OK\r\nContent-',
    finish: close,
    error: connectionClosed,
  },
  {
    name: 'a connection that is closed within the body',
    bytes: 'HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n{',
    finish: close,
    error: connectionClosed,
  },
  {
    name: 'a connection that is closed within a chunk',
    bytes: 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{',
    finish: close,
    error: connectionClosed,
  },
])
  test(`rejects ${name}`, async t => {
    await rejects(fetchBytes(t, bytes, finish), error)
  })

for (const { status, sent } of [
  { status: 204, sent: '' },
  { status: 205, sent: '{}' },
  { status: 304, sent: '' },
])
  test(`an answer of status ${status} has no body, whatever its Content-Length is`, async t => {
    const response = await fetchBytes(t, `HTTP/1.1 ${status} None\r\nContent-Length: 2\r\n\r\n${sent}`)
    equal(response.status, status)
    equal(response.body, null)
  })

for (const status of [204, 304])
  test(`rejects an answer of status ${status} that a body follows`, async t => {
    await rejects(fetchBytes(t, `HTTP/1.1 ${status} None\r\nContent-Length: 2\r\n\r\n{}`), { code: 'HPE_INVALID_CONSTANT' })
  })

test('reads headers of any name, several times and with bytes that are not ASCII', async t => {
  const names = ['__proto__', 'constructor', 'a', 'a', 'b']
  const { headers } = await fetchBytes(
    t,
    `HTTP/1.1 200 OK\r\n${names.map((name, at) => `${name}: ${at}\xff\r\n`).join('')}Content-Length: 0\r\n\r\n`,
  )
  deepEqual(
    ['__proto__', 'constructor', 'a', 'b'].map(name => headers.get(name)),
    ['0\xff', '1\xff', '2\xff, 3\xff', '4\xff'],
  )
})

test('a body without a length ends with the connection', async t => {
  const response = await fetchBytes(t, 'HTTP/1.1 200 OK\r\n\r\n{"a":1}', socket => socket.end())
  deepEqual(await response.json(), { a: 1 })
})

test('an answer of 4 MiB is read, and the connection of a larger one is closed', { timeout: 30_000 }, async t => {
  const maxBytes = 4 * 1024 * 1024
  const answer = `HTTP/1.1 200 OK\r\n\r\n${' '.repeat(maxBytes)}`
  const allowed = await fetchBytes(t, answer, socket => socket.end())
  equal((await allowed.arrayBuffer()).byteLength, maxBytes)
  // It does not end: without a limit it would be read until the memory is full.
  const closed = Promise.withResolvers<void>()
  const larger = fetchBytes(t, `${answer} `, socket => socket.once('close', closed.resolve))
  await rejects(larger, { message: /^the answer of localhost:\d+ is larger than 4194304 bytes$/ })
  await closed.promise
})

test('an answer that does not end is rejected when the signal is aborted', async t => {
  const controller = new AbortController()
  const server = createServer({ key, cert }, socket => {
    t.after(() => socket.destroy())
    socket.on('error', () => {})
    socket.on('data', () => socket.write('HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n{', () => controller.abort()))
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  t.after(() => server.close())
  const { port } = server.address() as AddressInfo
  const { signal } = controller
  await rejects(fetchWithCa(cert)(`https://localhost:${port}/`, { method: 'GET', headers: {}, signal }), { name: 'AbortError' })
})
