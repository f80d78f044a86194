import { deepEqual, equal } from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { eventually } from '../../../test/support/eventually.ts'
import { systemNamespace } from '../../api/index.ts'
import { type Client, namespaceResource } from '../../kubernetes/client/index.ts'
import { silentLog } from '../../kubernetes/controller/index.ts'
import { startTestServer } from '../../kubernetes/testing/index.ts'
import { startAllInOne } from '../index.ts'
import { keepPublishing, publishEndpoint, readEndpoints } from './index.ts'

const endpoint = (url: string) => ({ url, caCertificate: `ca of ${url}` })

async function publish(client: Client, role: 'join' | 'queue', url: string) {
  const publication = keepPublishing(client, role, endpoint(url), silentLog)
  await eventually(() => publication.notReady().length === 0, `${role} to be published`)
  return publication
}

test('a role is not ready until its address is published, and removes it on a clean stop without those of others', async () => {
  await using api = await startTestServer()
  const { client } = api
  const publication = keepPublishing(client, 'join', endpoint('https://join'), silentLog)
  equal(publication.notReady().length, 1)
  await client.resource(namespaceResource).apply({ metadata: { name: systemNamespace } }, { force: true })
  await eventually(() => publication.notReady().length === 0, 'the address to be published')
  const queue = await publish(client, 'queue', 'https://queue')
  deepEqual(await readEndpoints(client), { join: endpoint('https://join'), queue: endpoint('https://queue') })
  await publishEndpoint(client, 'stores', endpoint('https://stores'))
  // Concurrent: the second write is at an outdated version, and is retried.
  await Promise.all([publication.withdraw(), queue.withdraw()])
  deepEqual(await readEndpoints(client), { stores: endpoint('https://stores') })
})

test('an address that another process has replaced stays', async () => {
  await using api = await startTestServer()
  const { client } = api
  await client.resource(namespaceResource).apply({ metadata: { name: systemNamespace } }, { force: true })
  const first = await publish(client, 'queue', 'https://first')
  await publish(client, 'queue', 'https://second')
  await first.withdraw()
  deepEqual(await readEndpoints(client), { queue: endpoint('https://second') })
})

test('oarlock up removes the addresses of roles that ran apart on its data directory', async () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'oarlock-discovery-'))
  const port = { host: '127.0.0.1', port: 0 }
  const start = async () => await startAllInOne({ dataDir, listen: port, http: port, launcher: [], version: 'test' })
  const first = await start()
  for (const role of ['stores', 'join', 'queue'] as const) await publishEndpoint(first.client, role, endpoint(`https://${role}`))
  await first.stop({ graceMs: 0 })
  const second = await start()
  deepEqual(await readEndpoints(second.client), {})
  await second.stop({ graceMs: 0 })
  rmSync(dataDir, { recursive: true, force: true })
})
