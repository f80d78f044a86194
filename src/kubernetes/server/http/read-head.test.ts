import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { after, before, test } from 'node:test'
import fc from 'fast-check'
import { readHead } from './read-head.ts'

const plain = ['GET /api/v1/pods?watch=1&a=%20b HTTP/1.1', 'Host: a:1', 'Authorization: Bearer x', 'Accept: application/json, */*']
const text = (...lines: string[]) => lines.join('\r\n')

test('parses a simple head, and returns the same headers object for the same fields', () => {
  const first = readHead(text(...plain), undefined)
  assert.deepEqual(
    { ...first, headers: { ...first?.headers }, fieldsText: '' },
    {
      method: 'GET',
      url: '/api/v1/pods?watch=1&a=%20b',
      headers: { host: 'a:1', authorization: 'Bearer x', accept: 'application/json, */*' },
      contentLength: 0,
      fieldsText: '',
    },
  )
  const second = readHead(text('GET /b HTTP/1.1', ...plain.slice(1)), first)
  assert.equal(second?.url, '/b')
  assert.equal(second?.headers, first?.headers)
  const other = readHead(text('POST /b HTTP/1.1', ...plain.slice(1), 'Content-Length: 12'), first)
  assert.equal(other?.contentLength, 12)
})

test('parses the fields of a front proxy, which are repeated for each group', () => {
  const lines = ['X-Remote-User: ada', 'X-Remote-Group: a', 'X-Remote-Group: b', 'X-Remote-Extra-example.com%2fpod-name: web-0']
  assert.deepEqual(
    { ...readHead(text(...plain, ...lines), undefined)?.headers },
    {
      ...{ host: 'a:1', authorization: 'Bearer x', accept: 'application/json, */*' },
      ...{ 'x-remote-user': 'ada', 'x-remote-group': 'a, b', 'x-remote-extra-example.com%2fpod-name': 'web-0' },
    },
  )
})

for (const [what, ...lines] of [
  ['a request without Host', 'GET / HTTP/1.1', 'Accept: a'],
  ['a request without header fields', 'GET / HTTP/1.1'],
  ['two Host fields', 'GET / HTTP/1.1', 'Host: a', 'Host: a'],
  ['two X-Remote-User fields', 'GET / HTTP/1.1', 'Host: a', 'X-Remote-User: a', 'X-Remote-User: a'],
  ['HTTP/1.0', 'GET / HTTP/1.0', 'Host: a'],
  ['the method CONNECT', 'CONNECT / HTTP/1.1', 'Host: a'],
  ['an absolute URL', 'GET http://a/ HTTP/1.1', 'Host: a'],
  ['a URL with a fragment', 'GET /a#b HTTP/1.1', 'Host: a'],
  ['two spaces after the method', 'GET  / HTTP/1.1', 'Host: a'],
  ['a tab after the method', 'GET\t/ HTTP/1.1', 'Host: a'],
  ['a chunked body', 'POST / HTTP/1.1', 'Host: a', 'Transfer-Encoding: chunked'],
  ['an unknown Transfer-Encoding', 'POST / HTTP/1.1', 'Host: a', 'transfer-encoding: xchunked', 'Content-Length: 1'],
  ['two Content-Length fields', 'POST / HTTP/1.1', 'Host: a', 'Content-Length: 1', 'Content-Length: 1'],
  ['a Content-Length with a list', 'POST / HTTP/1.1', 'Host: a', 'Content-Length: 1, 1'],
  ['a Content-Length with a sign', 'POST / HTTP/1.1', 'Host: a', 'Content-Length: +1'],
  ['a hexadecimal Content-Length', 'POST / HTTP/1.1', 'Host: a', 'Content-Length: 0x1'],
  ['a space before the colon', 'POST / HTTP/1.1', 'Host: a', 'Content-Length : 1'],
  ['a folded header line', 'GET / HTTP/1.1', 'Host: a', 'X-A: b', ' c'],
  ['a bare line feed', 'GET / HTTP/1.1', 'Host: a\nX: b'],
  ['a NUL character', 'GET / HTTP/1.1', 'Host: a\0'],
  ['a character outside ASCII', 'GET / HTTP/1.1', 'Host: a', 'X-A: \xe9'],
  ['an upgrade', 'GET / HTTP/1.1', 'Host: a', 'Connection: upgrade', 'Upgrade: websocket'],
  ['Connection: close', 'GET / HTTP/1.1', 'Host: a', 'Connection: close'],
  ['Expect: 100-continue', 'POST / HTTP/1.1', 'Host: a', 'Expect: 100-continue', 'Content-Length: 1'],
] as const) {
  test(`leaves to node:http: ${what}`, () => assert.equal(readHead(text(...lines), undefined), undefined))
}

type Seen = { method?: string; url?: string; headers: object; body: string }
const seen: Seen[] = []
const server = createServer((request, response) => {
  let body = ''
  request.setEncoding('latin1')
  request.on('data', chunk => (body += chunk))
  request.on('end', () => {
    seen.push({ method: request.method, url: request.url, headers: { ...request.headers }, body })
    response.end()
  })
})
before(async () => {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
})
after(() => {
  server.closeAllConnections()
  server.close()
})

const someChar = fc.oneof(
  { weight: 6, arbitrary: fc.constantFrom(...'abAB019-_:;/?%&=.,*+ "') },
  { weight: 1, arbitrary: fc.constantFrom('\t', '\r', '\n', '\0', '\x7f', '\x80', '\xff', '#', '{', '<', '\\', '|', '^', '`') },
)
const someText = fc.array(someChar, { maxLength: 12 }).map(chars => chars.join(''))
const name = fc.oneof(
  fc.constantFrom('Host', 'Accept', 'Authorization', 'Content-Type', 'X-A', '__proto__', 'constructor', 'Connection', 'content-length'),
  fc.constantFrom('X-Remote-User', 'X-Remote-Group', 'x-remote-group', 'X-Remote-Extra-a.b%2fc_d', 'X-Remote-Extra-a'),
  someText,
)
const fields = fc.array(
  fc.oneof(
    fc.tuple(name, someText).map(([key, value]) => `${key}: ${value}`),
    fc
      .tuple(name, fc.constantFrom('', ' ', '  ', '\t'), someText, fc.constantFrom('', ' ', '\t'))
      .map(parts => `${parts[0]}:${parts.slice(1).join('')}`),
    fc.constantFrom(
      'Content-Length: 3',
      'Content-Length: 03',
      'Content-Length: 3 ',
      'Transfer-Encoding: chunked',
      'Connection: keep-alive',
    ),
  ),
  { maxLength: 4 },
)
const target = fc.oneof(
  fc.constantFrom('/', '/a', '/api/v1/pods?limit=1', '*', 'http://a/', '//'),
  someText.map(path => `/${path}`),
)
const method = fc.constantFrom('GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'HEAD', 'get', 'OPTIONS')

test('node:http parses every accepted head in the same way (request smuggling)', async () => {
  let accepted = 0
  await fc.assert(
    fc.asyncProperty(method, target, fields, async (verb, url, lines) => {
      const head = text(`${verb} ${url} HTTP/1.1`, 'Host: test', ...lines)
      const read = readHead(head, undefined)
      // Longer bodies say no more than a short one.
      if (!read || read.contentLength > 1_000) return
      accepted++
      seen.length = 0
      const socket = connect((server.address() as AddressInfo).port, '127.0.0.1').on('error', () => {})
      const body = 'x'.repeat(read.contentLength)
      // The request behind it shows that both agree on where this one ends.
      socket.write(Buffer.from(`${head}\r\n\r\n${body}GET /next HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n`, 'latin1'))
      socket.resume()
      await once(socket, 'close')
      const { method: sent, url: path, headers } = read
      assert.deepEqual(seen[0], { method: sent, url: path, headers: { ...headers }, body })
      assert.equal(seen[1]?.url, '/next')
    }),
    { numRuns: 3_000 },
  )
  assert.ok(accepted > 300, `only ${accepted} heads were plain: the test tests little`)
})
