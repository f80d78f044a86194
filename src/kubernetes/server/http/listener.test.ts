import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { IncomingMessage } from 'node:http'
import { connect as connectHttp2 } from 'node:http2'
import { type AddressInfo, connect as connectTcp } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { connect, type TLSSocket } from 'node:tls'
import fc from 'fast-check'
import { eventually } from '../../../../test/support/eventually.ts'
import { ConnectionLimiter } from '../../util/index.ts'
import { readCertificates } from '../auth/index.ts'
import { type Reply, type Sent, sendDocument } from '../wire/index.ts'
import type { HttpRequest } from './handler-types.ts'
import { type Listener, type ListenerOptions, makeListener } from './listener.ts'
import { readBody } from './read-body.ts'

const dir = mkdtempSync(join(tmpdir(), 'oarlock-listener-'))
let tls: { certificate: string; key: string; ca: string }
before(async () => {
  tls = await readCertificates(dir, '127.0.0.1', Date.now())
})
after(() => rmSync(dir, { recursive: true }))

/** The protocol implementation of a request: `own` HTTP/1.1, `node` for node:http, `h2`. */
const wayOf = (request: HttpRequest) => (request.body ? 'own' : request instanceof IncomingMessage ? 'node' : 'h2')

type Opened = { listener: Listener; port: number; held: Map<string, Reply> }

/** Responds with the protocol implementation and the body of a request; `/hold/NAME` waits in `held`, `/stream` sends three chunks. */
async function withListener(run: (opened: Opened) => Promise<void>, options: Partial<ListenerOptions> = {}): Promise<void> {
  const held = new Map<string, Reply>()
  const handler = (request: HttpRequest, reply: Reply) => {
    const url = request.url ?? ''
    if (url.startsWith('/hold/')) held.set(url.slice(6), reply)
    else if (url === '/early') answer(reply, 'early')
    else if (url === '/stream') {
      reply.writeHead(200, { 'Content-Type': 'text/plain' })
      for (const piece of ['a\n', 'b\n', 'c\n']) reply.write(piece)
      reply.end()
    } else void readBody(request).then(body => answer(reply, `${request.method} ${url} ${wayOf(request)} ${body}`))
  }
  const listener = makeListener({ tls, handler, nodeHttpPrefixes: ['/mounted/'], onTlsError() {}, onServerError() {}, ...options })
  listener.server.listen(0, '127.0.0.1')
  await once(listener.server, 'listening')
  try {
    await run({ listener, port: (listener.server.address() as AddressInfo).port, held })
  } finally {
    await listener.stop(0, () => {})
  }
}

function answer(reply: Reply, text: string): void {
  reply.writeHead(200, ['Content-Type', 'text/plain', 'Content-Length', text.length])
  reply.end(text, 'latin1')
}

async function open(port: number): Promise<{ socket: TLSSocket; until(end: string | RegExp): Promise<string> }> {
  const socket = connect({ host: '127.0.0.1', port, ca: tls.ca })
  await once(socket, 'secureConnect')
  let text = ''
  socket.on('error', () => {})
  socket.setEncoding('latin1').on('data', chunk => (text += chunk))
  return {
    socket,
    async until(end) {
      const isReceived = () => (typeof end === 'string' ? text.includes(end) : end.test(text))
      await eventually(() => isReceived() || socket.destroyed, `${end} or the end of the connection`)
      return text
    },
  }
}

const get = (url: string, ...fields: string[]) => [`GET ${url} HTTP/1.1`, 'Host: a', ...fields, '', ''].join('\r\n')
const post = (url: string, body: string) => `POST ${url} HTTP/1.1\r\nHost: a\r\nContent-Length: ${body.length}\r\n\r\n${body}`
const bodies = (text: string) => [...text.matchAll(/(?:GET|POST) \S+ (?:own|node|h2) [^H]*/g)].map(([body]) => body.trim())

test('a client that sends its whole body before it reads gets an early response that ends the connection', () =>
  withListener(async ({ port }) => {
    const part = Buffer.alloc(64 * 1024, 97)
    const socket = connect({ host: '127.0.0.1', port, ca: tls.ca }).pause()
    await once(socket, 'secureConnect')
    socket.write(`POST /early HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: ${256 * part.length}\r\n\r\n`)
    for (let i = 0; i < 256; i++)
      await new Promise<void>((resolve, reject) => socket.write(part, error => (error ? reject(error) : resolve())))
    let text = ''
    for await (const chunk of socket.setEncoding('latin1')) text += chunk
    assert.match(text, /^HTTP\/1\.1 200 [\s\S]*early$/)
  }))

test('responses are sent in the order of their requests', () =>
  withListener(async ({ port, held }) => {
    const { socket, until } = await open(port)
    socket.write(get('/hold/a') + get('/b') + get('/stream') + get('/c'))
    while (!held.has('a')) await new Promise(setImmediate)
    await new Promise(setImmediate)
    answer(held.get('a')!, 'GET /a own ')
    const text = await until('/c own')
    assert.deepEqual(bodies(text), ['GET /a own', 'GET /b own', 'GET /c own'])
    assert.ok(text.indexOf('/b own') < text.indexOf('2\r\na\n\r\n2\r\nb\n\r\n2\r\nc\n\r\n0\r\n\r\n'))
    socket.destroy()
  }))

test('accepts a request that arrives in chunks of any size', () =>
  withListener(async ({ port }) => {
    const { socket, until } = await open(port)
    const text = post('/a', 'first') + get('/b') + post('/c', 'last')
    for (const char of text) {
      socket.write(char)
      await new Promise(setImmediate)
    }
    assert.deepEqual(bodies(await until('own last')), ['POST /a own first', 'GET /b own', 'POST /c own last'])
    socket.destroy()
  }))

test('more pipelined requests than the limit all get responses', () =>
  withListener(async ({ port, held }) => {
    const { socket, until } = await open(port)
    const urls = Array.from({ length: 1_000 }, (_, index) => `/${index}`)
    socket.write(get('/hold/first') + urls.map(url => post(url, 'x'.repeat(100))).join(''))
    while (!held.has('first')) await new Promise(setImmediate)
    answer(held.get('first')!, '')
    const text = await until('POST /999 own')
    assert.deepEqual(
      [...text.matchAll(/POST (\S+) own/g)].map(([, url]) => url),
      urls,
    )
    socket.destroy()
  }))

for (const { what, cacheKey, compressions } of [
  { what: 'a document that is compressed once', cacheKey: {}, compressions: 1 },
  { what: 'a body that is compressed each time', cacheKey: undefined, compressions: 20 },
]) {
  test(`of pipelined requests one at a time is answered with ${what}`, async t => {
    const compress = t.mock.method(process.getBuiltinModule('node:zlib'), 'gzip')
    const body = Array.from({ length: 40_000 }, (_, index) => `"field ${index}": {"type": "string"}`).join()
    const document: Sent = { code: 200, contentType: 'application/json', headers: {}, body, ...(cacheKey && { cacheKey }) }
    let started = 0
    let startedBeforeFirst = 0
    const handler = async (_: HttpRequest, reply: Reply) => {
      started++
      await sendDocument(reply, document, 'gzip')
      startedBeforeFirst ||= started
    }
    await withListener(
      async ({ port }) => {
        const { socket } = await open(port)
        socket.write(get('/a').repeat(20))
        await eventually(() => started === 20, 'all requests are processed')
        assert.equal(startedBeforeFirst, 1)
        assert.equal(compress.mock.callCount(), compressions)
        socket.destroy()
      },
      { handler },
    )
  })
}

for (const [what, first] of [
  ['a body in chunks', 'POST /a HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n'],
  ['a repeated field', get('/a', 'X-A: 1', 'X-A: 2')],
  ['a mounted path', get('/mounted/a')],
] as const) {
  test(`node:http serves complex requests in order: ${what}`, () =>
    withListener(async ({ port }) => {
      const { socket, until } = await open(port)
      socket.write(get('/before') + first + get('/after'))
      const text = await until('/after node')
      assert.match(text, /GET \/before own[\s\S]*\/a node[\s\S]*GET \/after node/)
      socket.destroy()
    }))
}

test('invalid HTTP gets 400 and the connection is closed', () =>
  withListener(async ({ port }) => {
    const { socket, until } = await open(port)
    socket.write('GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n')
    assert.match(await until(/\0/), /^HTTP\/1\.1 400 Bad Request\r\nConnection: close/)
    assert.ok(socket.destroyed || socket.readableEnded)
  }))

test('a response to HEAD has a length and no body', () =>
  withListener(async ({ port }) => {
    const { socket, until } = await open(port)
    socket.write(get('/a').replace('GET', 'HEAD') + get('/b'))
    const text = await until('/b own')
    assert.match(text, /Content-Length: 12\r\n[\s\S]*\r\n\r\nHTTP\/1\.1 200/)
    socket.destroy()
  }))

test('a stop finishes requests in progress and sends Connection: close with the last response', () =>
  withListener(async ({ listener, port, held }) => {
    const { socket, until } = await open(port)
    socket.write(get('/hold/a') + get('/hold/b'))
    while (!held.has('b')) await new Promise(setImmediate)
    const stopped = listener.stop(10_000, () => {})
    socket.write(get('/c'))
    answer(held.get('a')!, 'first')
    answer(held.get('b')!, 'second')
    const text = await until(/\0/)
    assert.match(text, /^HTTP\/1\.1 200 OK\r\n(?!.*Connection: close)[\s\S]*first[\s\S]*Connection: close[\s\S]*second$/)
    await stopped
  }))

test('HTTP/2 serves requests, bodies, streams, mounted paths and HEAD, and a stop lets them finish', () =>
  withListener(async ({ listener, port, held }) => {
    const session = connectHttp2(`https://127.0.0.1:${port}`, { ca: tls.ca })
    const ask = async (method: string, path: string, body?: string) => {
      const stream = session.request({ ':method': method, ':path': path })
      stream.end(body)
      let text = ''
      stream.setEncoding('utf8').on('data', chunk => (text += chunk))
      const [headers] = (await once(stream, 'response')) as [Record<string, unknown>]
      if (!stream.readableEnded) await once(stream, 'end')
      return `${headers[':status']} ${text}`
    }
    assert.equal(await ask('GET', '/a'), '200 GET /a h2 ')
    assert.equal(await ask('POST', '/b', 'x'.repeat(100_000)), `200 POST /b h2 ${'x'.repeat(100_000)}`)
    assert.equal(await ask('GET', '/stream'), '200 a\nb\nc\n')
    assert.equal(await ask('HEAD', '/a'), '200 ')
    assert.equal(await ask('GET', '/mounted/a'), '200 GET /mounted/a h2 ')
    const last = ask('GET', '/hold/a')
    while (!held.has('a')) await new Promise(setImmediate)
    const stopped = listener.stop(10_000, () => {})
    answer(held.get('a')!, 'last')
    assert.equal(await last, '200 last')
    await stopped
  }))

test('the responses of a client are closed when it disconnects, with each protocol', () =>
  withListener(async ({ port, held }) => {
    const { socket } = await open(port)
    socket.write(get('/hold/own'))
    const session = connectHttp2(`https://127.0.0.1:${port}`, { ca: tls.ca }).on('error', () => {})
    session.request({ ':path': '/hold/h2' }).on('error', () => {})
    await eventually(() => held.size === 2, 'both requests to arrive')
    const closed = Promise.all([...held.values()].map(reply => once(reply, 'close')))
    socket.destroy()
    session.destroy()
    await closed
    for (const reply of held.values()) assert.ok(reply.destroyed)
  }))

test('bytes that are not of the negotiated protocol do not affect other clients', () =>
  withListener(async ({ port }) => {
    const preface = 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'
    const settings = '\0\0\0\x04\0\0\0\0\0'
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom('h2', 'http/1.1'),
        fc.constantFrom('', preface, preface + settings, get('/a'), 'POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n'),
        fc.uint8Array({ maxLength: 60 }),
        async (protocol, start, garbage) => {
          const socket = connect({ host: '127.0.0.1', port, ca: tls.ca, ALPNProtocols: [protocol] }).on('error', () => {})
          await once(socket, 'secureConnect')
          socket.resume()
          socket.write(start, 'latin1')
          socket.write(garbage)
          await new Promise(setImmediate)
          if (garbage.length % 2 === 0) socket.end()
          else socket.destroy()
        },
      ),
      { numRuns: 60 },
    )
    const { socket, until } = await open(port)
    socket.write(get('/after'))
    assert.match(await until('/after own'), /GET \/after own/)
    socket.destroy()
  }))

/** A frame of HTTP/2 (RFC 9113, section 4.1). */
function frame(type: number, flags: number, stream: number, payload = Buffer.alloc(0)): Buffer {
  const head = Buffer.alloc(9)
  head.writeUIntBE(payload.length, 0, 3)
  head.writeUInt8(type, 3)
  head.writeUInt8(flags, 4)
  head.writeUInt32BE(stream, 5)
  return Buffer.concat([head, payload])
}
const opening = Buffer.concat([Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'), frame(4, 0, 0)])
for (const [what, first, again, isRead] of [
  ['SETTINGS without reading the acknowledgements', opening, frame(4, 0, 0, Buffer.from([0, 3, 0, 0, 0, 100])), false],
  ['PING without reading the responses', opening, frame(6, 0, 0, Buffer.alloc(8)), false],
  [
    'a header block without an end (CVE-2024-27983)',
    Buffer.concat([opening, frame(1, 0, 1, Buffer.alloc(9, '@'))]),
    frame(9, 0, 1, Buffer.alloc(16_000, '@')),
    true,
  ],
  ['windows that grow too large', opening, frame(8, 0, 0, Buffer.from([0x7f, 0xff, 0xff, 0xff])), true],
  ['data without a request', opening, frame(0, 0, 1), true],
] as const) {
  test(`a flood of HTTP/2 (${what}) closes its connection and does not affect others`, () =>
    withListener(async ({ port }) => {
      const socket = connect({ host: '127.0.0.1', port, ca: tls.ca, ALPNProtocols: ['h2'] })
      socket.on('error', () => {})
      await once(socket, 'secureConnect')
      if (isRead) socket.resume()
      socket.write(first)
      const some = Buffer.concat(Array.from({ length: Math.ceil(64_000 / again.length) }, () => again))
      const flood = () => {
        while (!socket.destroyed && socket.write(some));
      }
      socket.on('drain', flood)
      flood()
      // The server may send an error frame first.
      await new Promise(resolve => socket.once('close', resolve))
      const other = await open(port)
      other.socket.write(get('/after'))
      assert.match(await other.until('/after own'), /GET \/after own/)
      other.socket.destroy()
    }))
}

test('closes the oldest unauthenticated connection when there are too many, also one without a handshake', async () => {
  let nowMs = 0
  const connections = new ConnectionLimiter({ unauthenticated: 3, authenticated: 1, perUser: 1 }, () => (nowMs += 1_000))
  await withListener(
    async ({ port }) => {
      const silent = connectTcp(port, '127.0.0.1')
      silent.on('error', () => {})
      await once(silent, 'connect')
      const first = await open(port)
      const closed = Promise.all([once(silent.resume(), 'close'), once(first.socket, 'close')])
      const others = [await open(port), await open(port), await open(port)]
      await closed
      assert.equal(connections.size.unauthenticated, 3)
      for (const { socket } of others) socket.destroy()
      await eventually(() => connections.size.unauthenticated === 0, 'the connections to be closed')
    },
    { connections },
  )
})

test('an error of accept does not end the process, and is reported once per interval', async () => {
  const errors: Error[] = []
  await withListener(
    async ({ listener, port }) => {
      // As Node reports it: accept fails while the process has no free descriptor.
      for (let i = 0; i < 3; i++) listener.server.emit('error', Object.assign(new Error('accept EMFILE'), { code: 'EMFILE' }))
      const { socket, until } = await open(port)
      socket.write(get('/after'))
      assert.match(await until('/after own'), /GET \/after own/)
      socket.destroy()
      assert.equal(errors.length, 1)
    },
    { onServerError: error => void errors.push(error) },
  )
})

for (const way of ['http/1.1', 'h2']) {
  test(`disconnects a client that does not read its response: ${way}`, async () => {
    await withListener(
      async ({ port, held }) => {
        const cut = Promise.withResolvers<void>()
        if (way === 'h2') {
          const session = connectHttp2(`https://127.0.0.1:${port}`, { ca: tls.ca, settings: { initialWindowSize: 0 } })
          session.on('error', () => {})
          const stream = session.request({ ':path': '/hold/x' })
          stream.on('error', () => {})
          stream.on('close', () => cut.resolve())
        } else {
          const socket = connect({ host: '127.0.0.1', port, ca: tls.ca }, () =>
            socket.pause().write('GET /hold/x HTTP/1.1\r\nHost: x\r\n\r\n'),
          )
          socket.on('error', () => {})
        }
        const reply = await eventually(() => held.get('x'), 'the request to arrive')
        reply.on('close', () => cut.resolve())
        reply.writeHead(200, {})
        // More than the socket buffers of the kernel hold.
        for (let i = 0; i < 40; i++) reply.write('x'.repeat(1024 * 1024), 'latin1')
        await cut.promise
      },
      { sendBufferLimits: { stalledSweeps: 1 } },
    )
  })
}
