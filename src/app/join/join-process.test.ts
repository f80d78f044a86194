import { deepEqual, equal } from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { Agent, fetch } from 'undici'
import { workerPoolResource } from '../../api/index.ts'
import { silentLog } from '../../kubernetes/controller/index.ts'
import { startTestServer } from '../../kubernetes/testing/index.ts'
import { installOarlock } from '../controllers/install.ts'
import { publishEndpoint } from '../discovery/index.ts'
import { createJoinToken } from './index.ts'
import { startJoinProcess } from './join-process.ts'

test('a worker cannot join, and keeps its token, until the address of the stores is known', async () => {
  await using api = await startTestServer()
  const { client } = api
  await installOarlock(client)
  await client.resource(workerPoolResource).create({ metadata: { name: 'edge' }, spec: { mode: 'External' } })
  const dataDir = mkdtempSync(join(tmpdir(), 'oarlock-join-'))
  const listen = { host: '127.0.0.1', port: 0 }
  const apiEndpoint = { url: client.server, caCertificate: undefined }
  const service = await startJoinProcess({ client, dataDir, listen, names: [], api: apiEndpoint, log: silentLog })
  const dispatcher = new Agent({ connect: { rejectUnauthorized: false } })
  const post = async (path: string, token: string | undefined, body: object = {}) => {
    const headers = { 'content-type': 'application/json', ...(token !== undefined && { authorization: `Bearer ${token}` }) }
    const response = await fetch(`${service.url}${path}`, { method: 'POST', headers, body: JSON.stringify(body), dispatcher })
    return { status: response.status, body: (await response.json()) as Record<string, unknown> }
  }
  try {
    const ca = await (await fetch(`${service.url}/join/ca`, { dispatcher })).text()
    const token = await createJoinToken(client, ca, { pool: 'edge', ttlMs: 600_000, uses: 1 })
    const unknown = { code: 503, message: 'no stores have published their address: start "oarlock stores"' }
    deepEqual(await post('/join', undefined, { token: token.text }), { status: 503, body: unknown })
    await publishEndpoint(client, 'stores', { url: 'https://stores', caCertificate: 'PEM' })
    const joined = await post('/join', undefined, { token: token.text })
    equal(joined.status, 200)
    deepEqual(joined.body.stores, { url: 'https://stores', caCertificate: 'PEM' })
    deepEqual(joined.body.server, { url: client.server })
  } finally {
    await dispatcher.close()
    await service.stop()
    rmSync(dataDir, { recursive: true, force: true })
  }
})
