import { equal, ok } from 'node:assert/strict'
import { once } from 'node:events'
import { type ClientHttp2Session, connect } from 'node:http2'
import { after, before, test } from 'node:test'
import { eventually } from '../../../../test/support/eventually.ts'
import { configMap, configMapsPath, startTestServer, type TestServer } from '../server.testing.ts'

// As in http2.ts.
const streams = 250
const sessionsPerAccount = 6

let server: TestServer
const sessions: ClientHttp2Session[] = []
before(async () => {
  server = await startTestServer()
})
after(async () => {
  for (const session of sessions) session.destroy()
  await server.close()
})

/** Sends requests whose bodies never arrive. */
async function holdRequests(account: string): Promise<void> {
  const token = server.server.issueToken({ name: account, groups: ['system:masters'], ttlMs: 600_000 })
  for (let i = 0; i < sessionsPerAccount; i++) {
    const session = connect(server.server.url, { ca: server.server.caCertificate })
    session.on('error', () => {})
    sessions.push(session)
    await once(session, 'remoteSettings')
    const headers = { ':method': 'POST', ':path': configMapsPath('default'), authorization: `Bearer ${token}`, 'content-length': '10' }
    for (let opened = 0; opened < streams; opened++) session.request(headers, { endStream: false }).on('error', () => {})
  }
}

test('two accounts whose requests never end leave capacity for a third one', async () => {
  const requests = streams * sessionsPerAccount
  for (const account of ['greedy', 'greedier']) {
    const before = server.server.stats()
    await holdRequests(account)
    await eventually(() => {
      const { inFlight, waitingRequests } = server.server.stats()
      return inFlight + waitingRequests === before.inFlight + before.waitingRequests + requests
    }, 'the requests to arrive')
  }
  ok(server.server.stats().waitingRequests >= requests, 'most of them wait')
  const token = server.server.issueToken({ name: 'modest', groups: ['system:masters'], ttlMs: 600_000 })
  const times: number[] = []
  for (let i = 0; i < 11; i++) {
    const startMs = performance.now()
    equal((await server.call(configMapsPath('default'), { token, body: configMap(`modest-${i}`) })).code, 201)
    equal((await server.call(configMapsPath('default', `modest-${i}`), { token })).code, 200)
    times.push(performance.now() - startMs)
  }
  // The median, and a limit far above what a loaded machine needs: behind the flood they would wait until it ends.
  times.sort((one, other) => one - other)
  ok((times[5] ?? 0) < 10_000, `a write and a read took ${times.map(Math.round)} ms`)
})
