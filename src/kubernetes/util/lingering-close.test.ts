import { deepEqual, equal, match, ok } from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { test } from 'node:test'
import { type LingerLimits, lingerOnClose } from './lingering-close.ts'

/** A server that rejects every request before it has read the body. */
async function withServer(run: (port: number) => Promise<void>, limits?: LingerLimits): Promise<void> {
  const sockets = new Set<Socket>()
  const server = createServer((_, response) => response.writeHead(413, { 'content-length': 2 }).end('no'))
  lingerOnClose(server, limits)
  server.on('connection', socket => sockets.add(socket).size)
  server.on('clientError', (_, socket) => socket.destroy())
  await once(server.listen(0, '127.0.0.1'), 'listening')
  try {
    await run((server.address() as AddressInfo).port)
    for (const socket of sockets) if (!socket.destroyed) await once(socket, 'close')
  } finally {
    server.close()
    server.closeAllConnections()
  }
}

const head = (fields: string) => `POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n${fields}\r\n\r\n`

/** As a simple client does: it reads the response when it has sent the whole body. */
async function exchange(port: number, fields: string, body: readonly Buffer[]): Promise<string> {
  const socket = connect(port, '127.0.0.1').pause()
  await once(socket, 'connect')
  socket.write(head(fields))
  // Errors of the writes reject.
  for (const part of body) await new Promise<void>((resolve, reject) => socket.write(part, error => (error ? reject(error) : resolve())))
  let received = ''
  for await (const chunk of socket.setEncoding('latin1')) received += chunk
  return received
}

test('a client that sends its whole body before it reads gets the response that ends the connection', async () => {
  await withServer(async port => {
    // More than the buffers of the kernel hold: the server has responded long before the end.
    const body = Array<Buffer>(256).fill(Buffer.alloc(64 * 1024, 97))
    match(await exchange(port, `Content-Length: ${256 * 64 * 1024}`, body), /^HTTP\/1\.1 413 [\s\S]*no$/)
    const chunks = [...body.map(part => Buffer.concat([Buffer.from('10000\r\n'), part, Buffer.from('\r\n')])), Buffer.from('0\r\n\r\n')]
    match(await exchange(port, 'Transfer-Encoding: chunked', chunks), /^HTTP\/1\.1 413 /)
  })
})

test('a connection is closed immediately when the body has arrived', async () => {
  await withServer(async port => {
    const startedMs = performance.now()
    match(await exchange(port, 'Content-Length: 3', [Buffer.from('abc')]), /^HTTP\/1\.1 413 /)
    ok(performance.now() - startedMs < 5_000)
  })
})

for (const [name, limits, bytesPerWrite] of [
  ['sends nothing more', { maxMs: 300, maxBytes: 1 << 30 }, 0],
  ['sends more than the limit', { maxMs: 60_000, maxBytes: 1024 * 1024 }, 64 * 1024],
] as const)
  test(`a client that ${name} is disconnected`, async () => {
    await withServer(async port => {
      // It does not end its side when the server has ended the other one.
      const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true }).on('error', () => {})
      socket.write(head(`Content-Length: ${1 << 30}`))
      const [response] = await once(socket.setEncoding('latin1'), 'data')
      match(response, /^HTTP\/1\.1 413 /)
      const flood = () => {
        if (bytesPerWrite > 0 && !socket.destroyed) socket.write(Buffer.alloc(bytesPerWrite), () => setImmediate(flood))
      }
      flood()
      // withServer awaits the end of the connection on the side of the server.
    }, limits)
  })

test('a request without a body is not affected', async () => {
  await withServer(async port => {
    const socket = connect(port, '127.0.0.1')
    socket.end('GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n')
    let received = ''
    for await (const chunk of socket.setEncoding('latin1')) received += chunk
    deepEqual(received.slice(0, 12), 'HTTP/1.1 413')
    equal(received.endsWith('no'), true)
  })
})
