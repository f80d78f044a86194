import { match } from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { text } from 'node:stream/consumers'
import { test } from 'node:test'
import { answerClientError } from './client-error.ts'

const head = 'POST /a HTTP/1.1\r\nHost: a\r\n'

for (const [what, sent, status] of [
  ['a request whose body does not arrive in time', `${head}Content-Length: 5\r\n\r\nabc`, '408 Request Timeout'],
  ['a request whose headers do not arrive in time', head, '408 Request Timeout'],
  ['headers above the limit', `${head}X-A: ${'a'.repeat(2_000)}\r\n\r\n`, '431 Request Header Fields Too Large'],
  ['two lengths', `${head}Content-Length: 1\r\nContent-Length: 2\r\n\r\n`, '400 Bad Request'],
] as const)
  test(`node:http answers ${what} with ${status}, and closes the connection`, async () => {
    const limits = { maxHeaderSize: 1_000, headersTimeout: 100, requestTimeout: 100, connectionsCheckingInterval: 20 }
    const server = createServer(limits, request => void request.resume())
    server.on('clientError', answerClientError)
    await once(server.listen(0, '127.0.0.1'), 'listening')
    try {
      const socket = connect((server.address() as AddressInfo).port, '127.0.0.1')
      socket.write(sent)
      match(await text(socket), new RegExp(`^HTTP/1\\.1 ${status}\r\nConnection: close\r\n`))
    } finally {
      server.close()
    }
  })
