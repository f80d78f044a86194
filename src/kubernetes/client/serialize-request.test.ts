import { equal, throws } from 'node:assert/strict'
import { test } from 'node:test'
import { type SerializedHeaders, serializeRequest } from './serialize-request.ts'

const serialize = (
  parts: { method?: string; path?: string; headers?: Record<string, string | string[]> },
  body = '',
  cache: SerializedHeaders = new Map(),
) => serializeRequest({ method: 'GET', path: '/a', headers: {}, timeoutMs: 1, ...parts }, 'host:1', body, cache)

test('writes the request line, the headers and the body', () => {
  equal(
    serialize({ headers: { accept: 'x', group: ['a', 'b'] } }),
    'GET /a HTTP/1.1\r\nhost: host:1\r\naccept: x\r\ngroup: a\r\ngroup: b\r\n\r\n',
  )
  equal(serialize({ method: 'POST' }, 'é'), 'POST /a HTTP/1.1\r\nhost: host:1\r\ncontent-length: 2\r\n\r\nÃ©')
  equal(serialize({ method: 'PATCH' }), 'PATCH /a HTTP/1.1\r\nhost: host:1\r\ncontent-length: 0\r\n\r\n')
})

test('replaces a cached header line when the value changes', () => {
  const cache: SerializedHeaders = new Map()
  serialize({ headers: { authorization: 'old' } }, '', cache)
  equal(serialize({ headers: { authorization: 'new' } }, '', cache).includes('authorization: new\r\n'), true)
})

test('keeps no header line of a name that the client of a gateway chose', () => {
  const cache: SerializedHeaders = new Map()
  for (let index = 0; index < 100; index++) serialize({ headers: { accept: 'x', [`x-own-${index}`]: 'y' } }, '', cache)
  equal([...cache.keys()].join(), 'accept')
})

test('rejects a path or header that would end its line', () => {
  throws(() => serialize({ path: '/a b' }), /must be percent-encoded/)
  throws(() => serialize({ headers: { x: 'y\r\nz: 1' } }), /header x contains a character/)
})
