import { deepEqual, equal, match, ok, rejects } from 'node:assert/strict'
import { once } from 'node:events'
import { existsSync, linkSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { request } from 'node:http'
import { connect, createServer } from 'node:net'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { silentLog, unixSocketUrl } from '../util/index.ts'
import { startServer } from './index.ts'
import { makeDataDir, startTestServer } from './server.testing.ts'

const namespaces = '/api/v1/namespaces'

/** A server with a Unix socket at `name` in its data directory, which `prepare` can change before the start. */
async function start(t: TestContext, { name = 'api.sock', prepare }: { name?: string; prepare?: (path: string) => Promise<void> } = {}) {
  const dataDir = makeDataDir()
  const path = join(dataDir, name)
  await prepare?.(path)
  const warnings: { reason?: string }[] = []
  const started = await startTestServer({
    dataDir,
    unixSocket: path,
    log: { ...silentLog, warn: fields => void warnings.push(fields) },
    mounts: [{ prefix: '/mounted', handler: (_, response) => void response.end('mounted') }],
  })
  t.after(async () => {
    await started.close()
    rmSync(dataDir, { recursive: true, force: true })
  })
  return { ...started, path, warnings }
}

async function get(socketPath: string, path: string, token?: string): Promise<{ status: number | undefined; text: string }> {
  const sent = request({ socketPath, path, agent: false, headers: token === undefined ? {} : { authorization: `Bearer ${token}` } }).end()
  const [response] = await once(sent, 'response')
  return { status: response.statusCode, text: (await response.setEncoding('utf8').toArray()).join('') }
}

test('the Unix socket serves the API and mounts with the credentials of the port, only to its owner, until the server stops', async t => {
  const { server, path, adminToken, close } = await start(t)
  equal(server.unixSocketUrl, unixSocketUrl(path))
  deepEqual([statSync(path).mode & 0o777, statSync(join(path, '..')).mode & 0o777], [0o600, 0o700])
  const { status, text } = await get(path, namespaces, adminToken)
  deepEqual([status, JSON.parse(text).kind], [200, 'NamespaceList'])
  equal((await get(path, '/mounted', adminToken)).text, 'mounted')
  equal((await get(path, namespaces)).status, 401)
  equal((await get(path, namespaces, 'wrong')).status, 401)
  const user = server.issueToken({ name: 'ada', groups: [], ttlMs: 60_000 })
  equal((await get(path, namespaces, user)).status, 403)
  await close()
  equal(existsSync(path), false)
  await rejects(get(path, namespaces, adminToken), { code: 'ENOENT' })
})

test('connections of the Unix socket are counted, and a stop closes idle ones', async t => {
  const { server, path, adminToken } = await start(t)
  const before = server.stats().connections
  const socket = connect(path)
  socket.write(`GET ${namespaces} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${adminToken}\r\n\r\n`)
  const [head] = await once(socket, 'data')
  match(String(head), /^HTTP\/1\.1 200 /)
  equal(server.stats().connections, before + 1)
  const ended = once(socket.resume(), 'end')
  await server.close({ graceMs: 60_000 })
  await ended
})

test('a socket that a killed server left is replaced', async t => {
  const { server, path, adminToken } = await start(t, {
    prepare: async path => {
      // The second name of a socket remains when its server removes the first.
      const left = createServer().listen(`${path}.1`)
      await once(left, 'listening')
      linkSync(`${path}.1`, path)
      await new Promise(resolve => left.close(resolve))
      await rejects(get(path, '/'), { code: 'ECONNREFUSED' })
    },
  })
  ok(server.unixSocketUrl)
  equal((await get(path, namespaces, adminToken)).status, 200)
})

test('a second server on the same data directory fails, and the socket still belongs to the first', async t => {
  const { dataDir, path, adminToken } = await start(t)
  await rejects(startServer({ dataDir, listen: { port: 0 }, unixSocket: path }), { code: 'DataInUse' })
  equal((await get(path, namespaces, adminToken)).status, 200)
})

test('a file that is no socket is kept, and the server has no Unix socket', async t => {
  const { server, path, warnings, call } = await start(t, { prepare: async path => writeFileSync(path, 'keep') })
  deepEqual([server.unixSocketUrl, warnings.map(({ reason }) => reason)], [undefined, ['a file that is no socket has this path']])
  equal((await call(namespaces)).code, 200)
  equal(readFileSync(path, 'utf8'), 'keep')
})

test('a server whose path is longer than the kernel allows has no Unix socket', async t => {
  const { server, warnings, call } = await start(t, { name: `${'a'.repeat(107)}.sock` })
  equal(server.unixSocketUrl, undefined)
  match(warnings[0]?.reason ?? '', /^the path has \d+ bytes, and at most 10[37] are allowed$/)
  equal((await call(namespaces)).code, 200)
})
