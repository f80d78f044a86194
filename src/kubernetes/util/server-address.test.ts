import { deepEqual, equal, throws } from 'node:assert/strict'
import { test } from 'node:test'
import { parseServerAddress, unixSocketUrl } from './server-address.ts'

for (const [url, want] of [
  ['https://127.0.0.1:7466/', { baseUrl: 'https://127.0.0.1:7466' }],
  ['http://localhost/prefix//', { baseUrl: 'http://localhost/prefix' }],
  ['unix:///data/api.sock', { baseUrl: 'http://localhost', socketPath: '/data/api.sock' }],
  ['unix:///data/api.sock/', { baseUrl: 'http://localhost', socketPath: '/data/api.sock' }],
  ['unix:///my%20data/100%25/api.sock', { baseUrl: 'http://localhost', socketPath: '/my data/100%/api.sock' }],
] as const) {
  test(`parses ${url}`, () => deepEqual(parseServerAddress(url), want))
}

for (const url of ['unix:', 'unix://', 'unix:///', 'unix:/a', 'unix://host/a', 'unix:///a?b', 'unix:///a#b', 'unix:///a%zz']) {
  test(`rejects ${url}`, () =>
    throws(() => parseServerAddress(url), { name: 'TypeError', message: /must be unix:\/\/ and an absolute path/ }))
}

test('the URL of a socket is parsed to its path, whatever characters it has', () => {
  for (const path of ['/a/api.sock', '/a b/100%/?#&/é.sock', '/a\\b/api.sock']) {
    equal(parseServerAddress(unixSocketUrl(path)).socketPath, path)
  }
})
