import { deepEqual, equal, match } from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { eventually } from '../../../test/support/eventually.ts'
import { systemNamespace } from '../../api/index.ts'
import { type Client, configMapResource, namespaceResource } from '../../kubernetes/client/index.ts'
import { silentLog } from '../../kubernetes/controller/index.ts'
import { startTestServer } from '../../kubernetes/testing/index.ts'
import { fullReason } from '../../kubernetes/util/index.ts'
import { startAllInOne } from '../index.ts'
import { type EndpointRole, endpointName, keepPublishing, publishEndpoint, readEndpoint } from './index.ts'

const endpoint = (url: string) => ({ url, caCertificate: `ca of ${url}` })
const log = silentLog

async function installed() {
  const api = await startTestServer()
  await api.client.resource(namespaceResource).apply({ metadata: { name: systemNamespace } }, { force: true })
  return api
}

async function publish(client: Client, role: EndpointRole, url: string, republishMs?: number) {
  const publication = keepPublishing({ client, role, endpoint: endpoint(url), log, republishMs })
  await eventually(() => publication.notReady().length === 0, `${role} to be published`)
  return publication
}

test('a role is not ready until its address is published, and removes it on a clean stop without those of others', async () => {
  await using api = await startTestServer()
  const { client } = api
  const publication = keepPublishing({ client, role: 'join', endpoint: endpoint('https://join'), log })
  equal(publication.notReady().length, 1)
  await client.resource(namespaceResource).apply({ metadata: { name: systemNamespace } }, { force: true })
  await eventually(() => publication.notReady().length === 0, 'the address to be published')
  const queue = await publish(client, 'queue', 'https://queue')
  deepEqual(await readEndpoint(client, 'join'), endpoint('https://join'))
  deepEqual(await readEndpoint(client, 'queue'), endpoint('https://queue'))
  await publication.withdraw()
  equal(await readEndpoint(client, 'join'), undefined)
  deepEqual(await readEndpoint(client, 'queue'), endpoint('https://queue'))
  await queue.withdraw()
})

test('an address that another process has replaced stays', async () => {
  await using api = await installed()
  const { client } = api
  const first = await publish(client, 'queue', 'https://first')
  const second = await publish(client, 'queue', 'https://second')
  await first.withdraw()
  deepEqual(await readEndpoint(client, 'queue'), endpoint('https://second'))
  await second.withdraw()
})

test('a certificate authority that was renewed replaces the published one', async () => {
  await using api = await installed()
  const { client } = api
  const publication = await publish(client, 'stores', 'https://own', 3_600_000)
  try {
    publication.replace({ url: 'https://own', caCertificate: 'renewed' })
    await eventually(async () => (await readEndpoint(client, 'stores'))?.caCertificate === 'renewed', 'it to be published')
    await eventually(() => publication.notReady().length === 0, 'it to be ready')
  } finally {
    await publication.withdraw()
  }
  equal(await readEndpoint(client, 'stores'), undefined)
})

test('a role is not ready when its address is overwritten or deleted, and publishes it again', async () => {
  await using api = await installed()
  const { client } = api
  const configMaps = client.resource(configMapResource)
  const name = endpointName('join')
  const publication = await publish(client, 'join', 'https://own', 3_600_000)
  try {
    await configMaps.patch(name, { data: { url: 'https://evil' } }, { type: 'merge', namespace: systemNamespace })
    await eventually(
      () => publication.notReady().map(fullReason).join() === 'its published address was replaced by another one: https://evil',
      'it to be reported',
    )
    await configMaps.delete(name, { namespace: systemNamespace })
    await eventually(() => publication.notReady().join() === 'its published address was deleted', 'it to be reported')
  } finally {
    publication.stop()
  }
  const persistent = await publish(client, 'join', 'https://own', 0)
  try {
    const isPublished = async () => (await readEndpoint(client, 'join'))?.url === 'https://own' && persistent.notReady().length === 0
    await configMaps.patch(name, { data: { url: 'https://evil' } }, { type: 'merge', namespace: systemNamespace })
    await eventually(isPublished, 'the address to be published again')
    await configMaps.delete(name, { namespace: systemNamespace })
    await eventually(isPublished, 'the address to be published again')
  } finally {
    persistent.stop()
  }
})

test('an address is published only while its process may, and never replaces that of another process before', async () => {
  await using api = await installed()
  const { client } = api
  const other = await publish(client, 'stores', 'https://other', 3_600_000)
  let mayPublish = false
  let asked = 0
  const publication = keepPublishing({
    ...{ client, role: 'stores', endpoint: endpoint('https://own'), log },
    mayPublish: () => {
      asked++
      return mayPublish
    },
  })
  try {
    await eventually(() => asked > 1, 'it to be tried again')
    match(publication.notReady().map(fullReason).join(), /not published: another process may serve/)
    deepEqual(await readEndpoint(client, 'stores'), endpoint('https://other'))
    mayPublish = true
    await eventually(async () => (await readEndpoint(client, 'stores'))?.url === 'https://own', 'the address to be published')
  } finally {
    publication.stop()
    other.stop()
  }
})

test('an address that must not get credentials is rejected', async () => {
  await using api = await installed()
  await publishEndpoint(api.client, 'stores', endpoint('http://stores'))
  const error = await readEndpoint(api.client, 'stores').catch((thrown: unknown) => thrown)
  match(String(error), /url in ConfigMap oarlock-system\/oarlock-endpoint-stores must be an https:/)
})

test('oarlock up removes the addresses of roles that ran apart on its data directory', async () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'oarlock-discovery-'))
  const port = { host: '127.0.0.1', port: 0 }
  const start = async () => await startAllInOne({ dataDir, listen: port, healthAddress: port, launcher: [], version: 'test' })
  const roles = ['stores', 'join', 'queue'] as const
  const first = await start()
  for (const role of roles) await publishEndpoint(first.client, role, endpoint(`https://${role}`))
  await first.stop({ graceMs: 0 })
  const second = await start()
  deepEqual(await Promise.all(roles.map(role => readEndpoint(second.client, role))), [undefined, undefined, undefined])
  await second.stop({ graceMs: 0 })
  rmSync(dataDir, { recursive: true, force: true })
})
