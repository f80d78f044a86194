import { deepEqual } from 'node:assert/strict'
import { test } from 'node:test'
import { forwardedHeaders } from './forwarded-request.ts'

const forwarded = (headers: Record<string, string>) => forwardedHeaders({ headers } as never)

test('a partition gets the headers of the client that are about the object, also from HTTP/2', () => {
  const sent = { accept: 'application/json', 'user-agent': 'kubectl' }
  deepEqual(forwarded({ ':method': 'GET', ':authority': 'gateway', ':path': '/', ':scheme': 'https', ...sent }), sent)
  deepEqual(forwarded({ host: 'gateway', connection: 'keep-alive', 'content-length': '5', te: 'trailers', ...sent }), sent)
})

test('a client names no other user, and speaks no language of gateways', () => {
  const own = {
    authorization: 'Bearer x',
    'x-remote-user': 'root',
    'x-remote-extra-a': 'b',
    'x-oarlock-watch': 'w',
    'x-oarlock-node-address': 'n',
  }
  deepEqual(forwarded(own), {})
})
