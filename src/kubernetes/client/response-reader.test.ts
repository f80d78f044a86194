import { deepEqual, equal, throws } from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { AnswerReader } from './response-reader.ts'

/** Feeds `bytes` cut at `cuts`, ends the connection, and returns what came out as `status body` and `!` for a closing one. */
function read(bytes: Buffer, cuts: readonly number[] = []): string[] {
  const reader = new AnswerReader(1_000)
  const answers: string[] = []
  const take = (answer: { status: number; body: string }, isClosing: boolean) =>
    void answers.push(`${answer.status} ${answer.body}${isClosing ? '!' : ''}`)
  const places = [0, ...[...cuts].map(cut => cut % (bytes.length + 1)).sort((a, b) => a - b), bytes.length]
  for (let index = 1; index < places.length; index++) {
    const chunk = bytes.subarray(places[index - 1], places[index])
    if (chunk.length > 0) reader.push(chunk, take)
  }
  reader.end(take)
  return answers
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

test('answers come out the same wherever the bytes are cut', () => {
  const expected = ['200 {"a":"é€😀"}', '201 ', '200 {"b":"ü\r\n"}', '204 ', '409 no!']
  const bytes = Buffer.from(stream)
  deepEqual(read(bytes), expected)
  fc.assert(
    fc.property(fc.array(fc.nat(), { maxLength: 60 }), cuts => deepEqual(read(bytes, cuts), expected)),
    { numRuns: 300 },
  )
})

test('an answer without a length ends with its connection, which takes no more', () => {
  deepEqual(read(Buffer.from('HTTP/1.1 200 OK\r\n\r\nabc')), ['200 abc!'])
  deepEqual(read(Buffer.from('HTTP/1.0 200 OK\r\ncontent-length: 1\r\n\r\na')), ['200 a!'])
})

test('what is not HTTP, and what never ends, is refused', () => {
  throws(() => read(Buffer.from('<html>\r\n\r\n')), /not HTTP\/1.1/)
  throws(() => read(Buffer.from('HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n')), /other than chunked/)
  throws(() => read(Buffer.from('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n')), /no size/)
  throws(() => read(Buffer.from(sized(200, 'x'.repeat(1_001)))), /larger than 1000 bytes/)
  throws(() => read(Buffer.alloc(70_000, 'a')), /head of an answer/)
})

test('headers are read when asked for, and repeated ones are kept', () => {
  let headers: object = {}
  new AnswerReader(10).push(
    Buffer.from('HTTP/1.1 200 OK\r\nRetry-After: 3\r\nWarning: a\r\nwarning:b\r\nContent-Length: 0\r\n\r\n'),
    answer => {
      headers = answer.headers
      equal(answer.keepAliveHintMs, undefined)
    },
  )
  deepEqual(headers, { 'retry-after': '3', warning: ['a', 'b'], 'content-length': '0' })
})
