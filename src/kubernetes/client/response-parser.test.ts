import { deepEqual, equal, throws } from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { ResponseParser } from './response-parser.ts'

/** Parses `bytes` split at `cuts`, ends the connection, and returns the responses as `status body`, with `!` for the last of the connection. */
function read(bytes: Buffer, cuts: readonly number[] = []): string[] {
  const parser = new ResponseParser(1_000)
  const responses: string[] = []
  const collect = (response: { status: number; body: string }, isLast: boolean) =>
    void responses.push(`${response.status} ${response.body}${isLast ? '!' : ''}`)
  const offsets = [0, ...[...cuts].map(cut => cut % (bytes.length + 1)).sort((a, b) => a - b), bytes.length]
  for (let index = 1; index < offsets.length; index++) {
    const chunk = bytes.subarray(offsets[index - 1], offsets[index])
    if (chunk.length > 0) parser.push(chunk, collect)
  }
  parser.end(collect)
  return responses
}

const sized = (status: number, body: string, more = '') =>
  `HTTP/1.1 ${status} X\r\nContent-Length: ${Buffer.byteLength(body)}\r\n${more}\r\n${body}`
const chunked = (...parts: string[]) =>
  `HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n${parts.map(part => `${Buffer.byteLength(part).toString(16)};x=y\r\n${part}\r\n`).join('')}0\r\nTrailer: 1\r\n\r\n`

const stream =
  sized(200, '{"a":"é€😀"}') +
  'HTTP/1.1 100 Continue\r\n\r\n' +
  sized(201, '') +
  chunked('{"b":', '"ü\r\n', '"}') +
  'HTTP/1.1 204 No Content\r\n\r\n' +
  sized(409, 'no', 'connection: close\r\n')

test('parses the same responses however the bytes are split', () => {
  const expected = ['200 {"a":"é€😀"}', '201 ', '200 {"b":"ü\r\n"}', '204 ', '409 no!']
  const bytes = Buffer.from(stream)
  deepEqual(read(bytes), expected)
  fc.assert(
    fc.property(fc.array(fc.nat(), { maxLength: 60 }), cuts => deepEqual(read(bytes, cuts), expected)),
    { numRuns: 300 },
  )
})

test('a response without a length ends with its connection, which accepts no more requests', () => {
  deepEqual(read(Buffer.from('HTTP/1.1 200 OK\r\n\r\nabc')), ['200 abc!'])
  deepEqual(read(Buffer.from('HTTP/1.0 200 OK\r\ncontent-length: 1\r\n\r\na')), ['200 a!'])
})

test('rejects data that is not HTTP, and responses without an end', () => {
  throws(() => read(Buffer.from('<html>\r\n\r\n')), /not HTTP\/1.1/)
  throws(() => read(Buffer.from('HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n')), /other than chunked/)
  throws(() => read(Buffer.from('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n')), /no size/)
  throws(() => read(Buffer.from(sized(200, 'x'.repeat(1_001)))), /larger than 1000 bytes/)
  throws(() => read(Buffer.alloc(70_000, 'a')), /a response head is longer/)
})

test('parses headers on access, and keeps repeated ones', () => {
  let headers: object = {}
  new ResponseParser(10).push(
    Buffer.from('HTTP/1.1 200 OK\r\nRetry-After: 3\r\nWarning: a\r\nwarning:b\r\nContent-Length: 0\r\n\r\n'),
    response => {
      headers = response.headers
      equal(response.keepAliveMs, undefined)
    },
  )
  deepEqual(headers, { 'retry-after': '3', warning: ['a', 'b'], 'content-length': '0' })
})
