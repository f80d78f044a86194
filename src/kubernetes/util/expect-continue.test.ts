import { deepEqual } from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { text } from 'node:stream/consumers'
import { test } from 'node:test'
import { sendContinue } from './expect-continue.ts'

const bodies = (responses: string) =>
  [...responses.matchAll(/content-length: (\d+)\r\n[\s\S]*?\r\n\r\n/gi)]
    .map(({ 0: head, 1: length, index }) => responses.slice(index + head.length, index + head.length + Number(length)))
    .filter(body => body.length > 0)

/** Sends the requests; the responses are ready in the reverse order. */
async function exchange(requests: readonly string[]): Promise<string> {
  const respond: (() => void)[] = []
  const server = createServer((request, response) => {
    void text(request).then(body => {
      respond.push(() => response.writeHead(200, { 'content-length': body.length }).end(Buffer.from(body)))
      if (respond.length === requests.length) for (const each of respond.toReversed()) each()
    })
  })
  sendContinue(server)
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1')
  socket.write(requests.join(''))
  let received = ''
  for await (const chunk of socket.setEncoding('latin1')) {
    received += chunk
    if (bodies(received).length === requests.length) break
  }
  server.close()
  return received
}

const request = (body: string, more = '') =>
  `POST / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\n${more}Content-Length: ${body.length}\r\n\r\n${body}`

test('pipelined requests that expect 100 Continue get whole responses, in order', async () => {
  const responses = await exchange([request('first'), request('second')])
  deepEqual(bodies(responses), ['first', 'second'])
})

test('a single request gets 100 Continue before its response', async () => {
  const [first, second] = (await exchange([request('body')])).split('\r\n\r\n')
  deepEqual([first, second?.split('\r\n')[0]], ['HTTP/1.1 100 Continue', 'HTTP/1.1 200 OK'])
})
