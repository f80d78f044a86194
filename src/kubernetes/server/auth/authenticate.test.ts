import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdirSync, rmSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { test } from 'node:test'
import { connect, createServer, type TLSSocket } from 'node:tls'
import { makeDataDir } from '../server.testing.ts'
import { Store } from '../storage/index.ts'
import { authenticate, issueClientCertificate, readCertificates, ServiceAccountTokens, SigningKey, Tokens } from './index.ts'

test('a client certificate authenticates its user until it expires, on an open connection too', async t => {
  const dataDir = makeDataDir()
  const pkiDir = join(dataDir, 'pki')
  mkdirSync(pkiDir)
  const store = await Store.open({ dataDir, synchronous: 'OFF' })
  t.after(async () => {
    await store.close()
    rmSync(dataDir, { recursive: true, force: true })
  })
  const tokens = new Tokens(pkiDir, new ServiceAccountTokens(store, new SigningKey(pkiDir)), store.table('secrets'))
  const nowMs = Date.now()
  const hourMs = 3_600_000
  const { ca, certificate, key } = await readCertificates(pkiDir, '127.0.0.1', nowMs)
  const server = createServer({ ca, cert: certificate, key, requestCert: true, rejectUnauthorized: false }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const user = await issueClientCertificate(pkiDir, { name: 'sailor', groups: ['crew', 'deck'], ttlMs: hourMs }, nowMs)
  const client = connect({ port, host: '127.0.0.1', ca, cert: user.certificate, key: user.key })
  client.on('error', () => {})
  const [socket] = (await once(server, 'secureConnection')) as [TLSSocket]
  t.after(() => {
    client.destroy()
    socket.destroy()
    server.close()
  })
  const who = (atMs: number) => authenticate({ headers: {}, socket }, { tokens }, atMs)
  assert.deepEqual(who(nowMs), { ...(who(nowMs) as object), user: { name: 'sailor', groups: ['crew', 'deck', 'system:authenticated'] } })
  assert.equal(who(nowMs + hourMs + 1_000), 'wrong')
  // A token takes precedence over the certificate, even if it is invalid.
  assert.equal(authenticate({ headers: { authorization: 'Bearer none' }, socket }, { tokens }, nowMs), 'wrong')
  assert.equal(authenticate({ headers: { authorization: 'Basic YTpi' }, socket }, { tokens }, nowMs), 'wrong')
})

test('an issued token expires, on a connection that used it too', async t => {
  const dataDir = makeDataDir()
  const store = await Store.open({ dataDir, synchronous: 'OFF' })
  t.after(async () => {
    await store.close()
    rmSync(dataDir, { recursive: true, force: true })
  })
  const tokens = new Tokens(dataDir, new ServiceAccountTokens(store, new SigningKey(dataDir)), store.table('secrets'))
  const nowMs = Date.now()
  const authorization = `Bearer ${tokens.issue({ name: 'a', groups: [], ttlMs: 60_000 }, nowMs)}`
  const request = { headers: { authorization }, socket: {} as TLSSocket }
  assert.notEqual(authenticate(request, { tokens }, nowMs), 'wrong')
  assert.notEqual(authenticate(request, { tokens }, nowMs + 59_000), 'wrong')
  assert.equal(authenticate(request, { tokens }, nowMs + 62_000), 'wrong')
})
