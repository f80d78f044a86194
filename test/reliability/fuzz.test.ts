import { deepEqual, equal, ok } from 'node:assert/strict'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { connect as connectPlain } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { connect } from 'node:tls'
import fc from 'fast-check'
import { parse } from 'yaml'
import { bytesOf, type Nonsense, nonsense } from './nonsense.ts'
import { RawClient } from './raw-client.ts'
import { startServerChild } from './server-child.ts'

/** 100,000 in the whole run: OARLOCK_FUZZ_REQUESTS=100000 node --test test/reliability/fuzz.test.ts */
const requests = Number(process.env.OARLOCK_FUZZ_REQUESTS ?? 2_000)
const sockets = 16

test(`${requests} malformed requests: no crash, no 500, bounded memory`, { timeout: 3_600_000 }, async () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'oarlock-fuzz-'))
  const server = await startServerChild(dataDir)
  const kubeconfig = parse(readFileSync(join(dataDir, 'kubeconfig'), 'utf8'))
  const token: string = kubeconfig.users[0].user.token
  const port = Number(new URL(server.url).port)
  const open = () => connect({ host: '127.0.0.1', port, rejectUnauthorized: false }).on('error', () => {})
  const clients = Array.from({ length: sockets }, () => new RawClient(open))
  const seed = Number(process.env.OARLOCK_TEST_SEED ?? Date.now() % 1e9)
  const statuses = new Map<number, number>()
  const rss: number[] = []
  let sent = 0
  const ask = async (client: RawClient, request: Nonsense) => {
    const { status, text } = await client.ask(bytesOf(request, token))
    statuses.set(status, (statuses.get(status) ?? 0) + 1)
    ok(status < 500 || status === 501 || status === 504, `seed ${seed}: ${JSON.stringify(request)}: ${text.slice(0, 1_000)}`)
    equal(server.child.exitCode, null, `seed ${seed}: the server ended after ${JSON.stringify(request)}`)
  }
  try {
    for (let part = 0; sent < requests; part++) {
      const some = fc.sample(nonsense, { seed: seed + part, numRuns: Math.min(2_000, requests - sent) })
      await Promise.all(
        clients.map(async client => {
          for (let next = some.pop(); next; next = some.pop()) {
            await ask(client, next)
            sent++
          }
        }),
      )
      await disturb(port, token)
      await clean(server)
      rss.push(rssOf(server.child.pid!))
    }
    equal((await server.call('GET', '/readyz')).code, 200)
    equal((await server.call('POST', '/api/v1/namespaces/default/configmaps', { metadata: { name: 'after' } })).code, 201)
    if (requests >= 10_000) {
      const half = Math.floor(rss.length / 2)
      ok(Math.max(...rss.slice(half)) < Math.max(...rss.slice(0, half)) * 1.25, `memory grows: ${rss}`)
      console.log(
        `${sent} requests, seed ${seed}; answers ${[...statuses]
          .sort()
          .map(([code, count]) => `${code}: ${count}`)
          .join(', ')}; RSS in MB ${rss.join(' ')}`,
      )
    }
    deepEqual(server.child.exitCode, null)
  } finally {
    for (const client of clients) client.close()
    await server.kill()
    rmSync(dataDir, { recursive: true, force: true })
  }
})

/** What is there is removed now and then, or lists become long and memory says nothing. */
async function clean(server: Awaited<ReturnType<typeof startServerChild>>): Promise<void> {
  for (const path of [
    '/api/v1/namespaces/default/configmaps',
    '/api/v1/namespaces/default/secrets',
    '/apis/apiextensions.k8s.io/v1/customresourcedefinitions',
    '/apis/apps/v1/namespaces/default/deployments',
  ]) {
    ok((await server.call('DELETE', path)).code < 500)
  }
}

/** Clients that stop in the middle, say nothing, read nothing, or speak no TLS. */
async function disturb(port: number, token: string): Promise<void> {
  const authorization = `Host: x\r\nAuthorization: Bearer ${token}\r\n`
  for (const text of [
    '',
    'GET /api HTTP/1.1\r\nHo',
    '\0\x01\x02 nonsense\r\n\r\n',
    `POST /api/v1/namespaces HTTP/1.1\r\n${authorization}Content-Length: 100\r\n\r\n{"half":`,
    `POST /api/v1/namespaces HTTP/1.1\r\n${authorization}Content-Length: 1000000\r\n\r\n{"half":`,
    `POST /api/v1/namespaces HTTP/1.1\r\n${authorization}Transfer-Encoding: chunked\r\n\r\nzz\r\n`,
    `POST /api/v1/namespaces HTTP/1.1\r\n${authorization}Content-Length: 1\r\nContent-Length: 2\r\n\r\n{}`,
    `GET /api/v1/configmaps?watch=1 HTTP/1.1\r\n${authorization}\r\n`,
    `GET /openapi/v2 HTTP/1.1\r\n${authorization}\r\n`.repeat(20),
    `GET /${'a'.repeat(40_000)} HTTP/1.1\r\n\r\n`,
  ]) {
    const socket = connect({ host: '127.0.0.1', port, rejectUnauthorized: false }).on('error', () => {})
    await once(socket, 'secureConnect')
    socket.pause()
    socket.write(text)
    await new Promise(setImmediate)
    socket.destroy()
    await once(socket, 'close')
  }
  for (const noise of ['GET / HTTP/1.1\r\n\r\n', '\x16\x03\x01\x02\x00\x01\x00', Buffer.alloc(5_000, 0xff)]) {
    const socket = connectPlain({ host: '127.0.0.1', port }).on('error', () => {})
    await once(socket, 'connect')
    socket.write(noise)
    socket.end()
    socket.resume()
    await once(socket, 'close')
  }
}

function rssOf(pid: number): number {
  const [, kilobytes] = /^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? []
  return Math.round(Number(kilobytes) / 1_024)
}
