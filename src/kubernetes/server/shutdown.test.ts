import assert from 'node:assert/strict'
import { rmSync } from 'node:fs'
import { request } from 'node:https'
import { test } from 'node:test'
import { connect } from 'node:tls'
import { makeDataDir, startTestServer } from './server.testing.ts'

const maps = '/api/v1/namespaces/default/configmaps'

test('a stop during writes: each write is acknowledged and durable, or rejected', async () => {
  const dataDir = makeDataDir()
  const server = await startTestServer({ dataDir, storage: { synchronous: 'FULL' } })
  const acknowledged = new Set<string>()
  let isStopping = false
  const write = async (writer: number) => {
    for (let i = 0; ; i++) {
      const name = `w${writer}-${i}`
      try {
        const { code } = await server.call(maps, { body: { metadata: { name } } })
        if (code === 201) acknowledged.add(name)
        else assert.equal(code, 503)
      } catch {
        assert.ok(isStopping, 'connections end only when the server stops')
        return
      }
      if (isStopping && i > 1_000) return
    }
  }
  const writing = Array.from({ length: 32 }, (_, writer) => write(writer))
  while (acknowledged.size < 200) await new Promise(setImmediate)
  isStopping = true
  await server.server.close()
  await server.agent.destroy()
  await Promise.all(writing)
  const restarted = await startTestServer({ dataDir })
  const { body } = await restarted.call(maps)
  const found = new Set(body.items.map(({ metadata }) => metadata.name))
  const lost = [...acknowledged].filter(name => !found.has(name))
  assert.deepEqual(lost, [])
  await restarted.close()
  rmSync(dataDir, { recursive: true, force: true })
})

test('a stop ends watches cleanly: complete lines and the end of the stream', async () => {
  const server = await startTestServer()
  const { adminToken } = server
  const opened = (path: string) =>
    new Promise<{ text(): string; ended: Promise<boolean> }>((resolve, reject) => {
      const outgoing = request(server.server.url + path, {
        ca: server.server.caCertificate,
        headers: { authorization: `Bearer ${adminToken}` },
      })
      outgoing.on('error', reject).on('response', response => {
        let text = ''
        response.setEncoding('utf8').on('data', chunk => (text += chunk))
        // `complete` is true only if the last chunk of the body arrived.
        const ended = new Promise<boolean>(done => response.on('close', () => done(response.complete)))
        resolve({ text: () => text, ended })
      })
      outgoing.end()
    })
  const watches = await Promise.all(Array.from({ length: 20 }, () => opened(`${maps}?watch=1`)))
  const { body } = await server.call(maps, { body: { metadata: { name: 'last' } } })
  await server.server.close()
  for (const { text, ended } of watches) {
    assert.equal(await ended, true)
    const lines = text().trimEnd().split('\n')
    assert.equal(JSON.parse(lines.at(-1)!).object.metadata.resourceVersion, body.metadata.resourceVersion, 'up to the last event')
  }
  await server.close()
})

test('a stop waits up to graceMs for requests in progress, and not for idle connections', async () => {
  const server = await startTestServer()
  const open = (text: string) => {
    const socket = connect({ host: '127.0.0.1', port: server.server.port, ca: server.server.caCertificate }, () => socket.write(text))
    return socket.on('error', () => {})
  }
  const half = (length: number) =>
    `POST ${maps} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${server.adminToken}\r\nContent-Length: ${length}\r\n\r\n{"half":`
  const sockets = [open(''), open('GET /api HTTP/1.1\r\nHo'), open(half(100)), open(half(1_000_000))]
  while (server.server.stats().connections < sockets.length || server.server.stats().inFlight === 0) await new Promise(setImmediate)
  await server.server.close({ graceMs: 200 })
  await assert.rejects(server.call('/version'), 'the server no longer listens')
  for (const socket of sockets) socket.destroy()
  await server.close()
})
