import { deepEqual, equal, throws } from 'node:assert/strict'
import { test } from 'node:test'
import { formatAddress, isLoopback, parseAddress } from './address.ts'

for (const [text, want] of [
  ['127.0.0.1:7466', { host: '127.0.0.1', port: 7466 }],
  ['localhost:0', { host: 'localhost', port: 0 }],
  ['[::1]:7466', { host: '::1', port: 7466 }],
  ['7466', { host: '127.0.0.1', port: 7466 }],
] as const) {
  test(`parses ${text} as host ${want.host}, port ${want.port}`, () => {
    deepEqual(parseAddress(text), want)
    deepEqual(parseAddress(formatAddress(want)), want)
  })
}

for (const text of ['', 'localhost', ':7466', 'a:b', '127.0.0.1:70000', '::1:7466', 'http://x:1']) {
  test(`rejects ${JSON.stringify(text)}`, () => throws(() => parseAddress(text), RangeError))
}

for (const [host, want] of [
  ['127.0.0.1', true],
  ['127.9.9.9', true],
  ['::1', true],
  ['localhost', true],
  ['LOCALHOST', true],
  ['::ffff:127.0.0.1', true],
  ['0:0:0:0:0:0:0:1', true],
  ['127.0.0.1.evil.example', false],
  ['127.evil', false],
  ['127.1', false],
  ['localhost.evil.example', false],
  ['::2', false],
  ['', false],
  ['0.0.0.0', false],
  ['10.0.0.1', false],
] as const) {
  test(`${host} is ${want ? '' : 'not '}loopback`, () => equal(isLoopback({ host }), want))
}
