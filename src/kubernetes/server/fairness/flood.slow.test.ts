import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { after, before, test } from 'node:test'
import { startTestServer, type TestServer } from '../server.testing.ts'

const sockets = 300
const maps = '/api/v1/namespaces/default/configmaps'

/** A client process with many sockets; each sends its next request as soon as it gets a response. */
const flooder = `
import { connect } from 'node:tls'
const [port, token, sockets] = process.argv.slice(1)
let sent = 1e9
const request = () => {
  const body = JSON.stringify({ data: { x: String(sent++) } })
  return 'PATCH ${maps}/flood HTTP/1.1\\r\\nHost: x\\r\\nAuthorization: Bearer ' + token +
  '\\r\\nContent-Type: application/merge-patch+json\\r\\nContent-Length: ' + body.length + '\\r\\n\\r\\n' + body
}
let open = 0
for (let i = 0; i < Number(sockets); i++) {
  const socket = connect({ host: '127.0.0.1', port: Number(port), rejectUnauthorized: false }, () => {
    if (++open === Number(sockets)) console.log('all sockets are open')
    socket.write(request())
  })
  socket.on('data', chunk => { if (chunk.includes('HTTP/1.1')) socket.write(request()) })
  socket.on('error', () => process.exit())
}
`

let server: TestServer
let child: ChildProcess | undefined
before(async () => {
  server = await startTestServer()
  await server.call(maps, { body: { metadata: { name: 'flood' } } })
})
after(async () => {
  child?.kill('SIGKILL')
  await server.close()
})

test(`a flood on ${sockets} sockets delays each request of another client by a bounded number of requests`, async () => {
  const token = server.server.issueToken({ name: 'flooder', groups: ['system:masters'], ttlMs: 600_000 })
  const arguments_ = [String(server.server.port), token, String(sockets)]
  child = spawn(process.execPath, ['--input-type=module', '-e', flooder, ...arguments_], { stdio: ['ignore', 'pipe', 'inherit'] })
  await once(createInterface({ input: child.stdout! }), 'line')
  const floodedBetween: number[] = []
  let mostWaiting = 0
  for (let i = 0; i < 60; i++) {
    const { writes, waitingRequests } = server.server.stats()
    mostWaiting = Math.max(mostWaiting, waitingRequests)
    const { code } = i % 2 === 0 ? await server.call(maps) : await server.call(maps, { body: { metadata: { name: `calm${i}` } } })
    assert.ok(code === 200 || code === 201)
    floodedBetween.push(server.server.stats().writes - writes)
  }
  const { writes, rejectedRequests } = server.server.stats()
  assert.ok(writes > sockets, 'the flood continues')
  assert.equal(rejectedRequests, 0, 'a client that waits for responses gets no 429')
  assert.ok(mostWaiting > 0, 'requests of the flood waited')
  // A request takes several ticks (read, commit, response), and in each the flooding user may start a limited number of requests.
  floodedBetween.sort((a, b) => a - b)
  assert.ok(floodedBetween[30]! <= 8 * 32, `median ${floodedBetween[30]}: ${floodedBetween}`)
})
