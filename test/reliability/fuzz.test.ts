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
import { encodeRequest, type MalformedRequest, malformedRequests } from './malformed-requests.ts'
import { RawClient } from './raw-client.ts'
import { startServerChild } from './server-child.ts'

/** The full run has 100,000: OARLOCK_FUZZ_REQUESTS=100000 node --test test/reliability/fuzz.test.ts */
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
  const send = async (client: RawClient, request: MalformedRequest) => {
    const { status, text } = await client.send(encodeRequest(request, token))
    statuses.set(status, (statuses.get(status) ?? 0) + 1)
    ok(status < 500 || status === 501 || status === 504, `seed ${seed}: ${JSON.stringify(request)}: ${text.slice(0, 1_000)}`)
    equal(server.child.exitCode, null, `seed ${seed}: the server exited after ${JSON.stringify(request)}`)
  }
  try {
    for (let part = 0; sent < requests; part++) {
      const batch = fc.sample(malformedRequests, { seed: seed + part, numRuns: Math.min(2_000, requests - sent) })
      await Promise.all(
        clients.map(async client => {
          for (let next = batch.pop(); next; next = batch.pop()) {
            await send(client, next)
            sent++
          }
        }),
      )
      await openBrokenConnections(port, token)
      await deleteObjects(server)
      rss.push(rssOf(server.child.pid!))
    }
    equal((await server.call('GET', '/readyz')).code, 200)
    equal((await server.call('POST', '/api/v1/namespaces/default/configmaps', { metadata: { name: 'after' } })).code, 201)
    if (requests >= 10_000) {
      const half = Math.floor(rss.length / 2)
      ok(Math.max(...rss.slice(half)) < Math.max(...rss.slice(0, half)) * 1.25, `memory grows: ${rss}`)
      console.log(
        `${sent} requests, seed ${seed}; responses ${[...statuses]
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

/** Deletes all objects between batches, so that their number does not dominate the measured memory. */
async function deleteObjects(server: Awaited<ReturnType<typeof startServerChild>>): Promise<void> {
  for (const path of [
    '/api/v1/namespaces/default/configmaps',
    '/api/v1/namespaces/default/secrets',
    '/apis/apiextensions.k8s.io/v1/customresourcedefinitions',
    '/apis/apps/v1/namespaces/default/deployments',
  ]) {
    ok((await server.call('DELETE', path)).code < 500)
  }
}

/** Opens connections that stop within a request, send nothing, read nothing, or do not use TLS. */
async function openBrokenConnections(port: number, token: string): Promise<void> {
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
  for (const bytes of ['GET / HTTP/1.1\r\n\r\n', '\x16\x03\x01\x02\x00\x01\x00', Buffer.alloc(5_000, 0xff)]) {
    const socket = connectPlain({ host: '127.0.0.1', port }).on('error', () => {})
    await once(socket, 'connect')
    socket.write(bytes)
    socket.end()
    socket.resume()
    await once(socket, 'close')
  }
}

function rssOf(pid: number): number {
  const [, kilobytes] = /^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? []
  return Math.round(Number(kilobytes) / 1_024)
}
