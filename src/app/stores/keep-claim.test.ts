import { deepEqual, equal, match, rejects } from 'node:assert/strict'
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { eventually } from '../../../test/support/eventually.ts'
import { systemNamespace } from '../../api/index.ts'
import { type Client, configMapResource, namespaceResource } from '../../kubernetes/client/index.ts'
import { silentLog } from '../../kubernetes/controller/index.ts'
import { startTestServer } from '../../kubernetes/testing/index.ts'
import { startApiServer } from '../api-server/api-server.ts'
import { claimStores, endpointName, publishEndpoint, readStoresId } from '../discovery/index.ts'
import { startAllInOne } from '../index.ts'
import { keepClaim } from './keep-claim.ts'
import { startStoresProcess } from './stores-process.ts'

const installed = async () => {
  const api = await startTestServer()
  await api.client.resource(namespaceResource).apply({ metadata: { name: systemNamespace } }, { force: true })
  return api
}
const dataOf = async (client: Client) =>
  (await client.resource(configMapResource).get(endpointName('stores'), { namespace: systemNamespace })).data ?? {}

test('stores of an empty directory are refused while others are those of the installation, and change nothing', async () => {
  await using api = await installed()
  const { client } = api
  const base = mkdtempSync(join(tmpdir(), 'oarlock-claim-'))
  const start = (name: string, replace = false) =>
    startStoresProcess({ client, dataDir: join(base, name), listen: { host: '127.0.0.1', port: 0 }, names: [], replace, log: silentLog })
  try {
    const first = await start('first')
    await eventually(async () => (await dataOf(client)).url === first.url, 'the address is published')
    const before = await dataOf(client)
    match(before.id ?? '', /^[0-9a-f]{32}$/)
    await rejects(start('empty'), {
      name: 'AppStartError',
      kind: 'DataDirectory',
      message: /empty .*are not those of this/,
      hint: /--replace-stores/,
    })
    // Another role may have it, or get it.
    deepEqual(readdirSync(join(base, 'empty')), [])
    // Stopped stores are still those of the installation.
    await first.stop()
    await rejects(start('empty'), { kind: 'DataDirectory' })
    deepEqual(await dataOf(client), before)
    const restored = await start('empty', true)
    await eventually(async () => (await dataOf(client)).url === restored.url, 'its address is published')
    await restored.stop()
    await rejects(start('first'), { kind: 'DataDirectory' })
  } finally {
    rmSync(base, { recursive: true, force: true })
  }
})

test('of two stores that claim the installation at the same time one gets it', async () => {
  await using api = await installed()
  const others = await Promise.all(['a', 'b', 'c'].map(id => claimStores(api.client, id)))
  const winner = await readStoresId(api.client)
  deepEqual(
    others,
    ['a', 'b', 'c'].map(id => (id === winner ? undefined : winner)),
  )
})

test('the id is claimed beside published addresses, and kept when they change', async () => {
  await using api = await installed()
  await publishEndpoint(api.client, 'stores', { url: 'https://one', caCertificate: 'PEM' })
  equal(await claimStores(api.client, 'a'), undefined)
  await publishEndpoint(api.client, 'stores', { url: 'https://two', caCertificate: undefined })
  deepEqual(await dataOf(api.client), { id: 'a', url: 'https://two' })
})

test('stores of another directory are refused after oarlock up, also when only its API server runs', async () => {
  const base = mkdtempSync(join(tmpdir(), 'oarlock-claim-'))
  const address = { host: '127.0.0.1', port: 0 }
  try {
    const up = await startAllInOne({ dataDir: join(base, 'up'), listen: address, healthAddress: address, launcher: [], version: 'test' })
    await up.stop({ graceMs: 0 })
    const api = await startApiServer({ dataDir: join(base, 'up'), listen: address })
    const client = await api.connect({ name: 'admin', groups: ['system:masters'] }, 'test')
    const start = (name: string) => startStoresProcess({ client, dataDir: join(base, name), listen: address, names: [], log: silentLog })
    await rejects(start('empty'), { name: 'AppStartError', kind: 'DataDirectory', hint: /--replace-stores/ })
    // Its own directory is accepted.
    await (await start('up')).stop()
    await client.close()
    await api.server.close()
  } finally {
    rmSync(base, { recursive: true, force: true })
  }
})

test('stores that were replaced serve no longer', async () => {
  await using api = await installed()
  const options = { id: 'a', dataDir: '/data', replace: false, log: silentLog, checkMs: 10, retryMs: 10 }
  const claim = await keepClaim({ ...options, client: api.client })
  try {
    equal(claim.isClaimed, true)
    await claimStores(api.client, 'b', { replace: true })
    await eventually(async () => !claim.isClaimed, 'the claim is lost')
    match(claim.notReady().join(), /are not those of this installation \(b\)/)
  } finally {
    claim.stop()
  }
})

test('a refusal at the start is thrown and not logged, one of stores that ran is logged', async () => {
  await using api = await installed()
  const logged: string[] = []
  const log = { warn: () => {}, error: (_: object, text: string) => logged.push(text) } as unknown as typeof silentLog
  const options = { client: api.client, dataDir: '/data', replace: false, log, checkMs: 10 }
  const claim = await keepClaim({ ...options, id: 'a' })
  try {
    await rejects(keepClaim({ ...options, id: 'b' }), { name: 'AppStartError' })
    deepEqual(logged, [])
    await claimStores(api.client, 'b', { replace: true })
    await eventually(() => logged.length > 0, 'the refusal is logged')
    match(logged.join('\n'), /^requests are rejected: [^\n]* not those of this installation \(b\)[^\n]*$/)
  } finally {
    claim.stop()
  }
})

test('stores do not serve before the API server has answered whose they are', async () => {
  await using api = await installed()
  let isReachable = false
  const resource: Client['resource'] = type => {
    if (!isReachable) throw new Error('unreachable')
    return api.client.resource(type)
  }
  const client = { resource } as Client
  const claim = await keepClaim({ client, id: 'a', dataDir: '/data', replace: false, log: silentLog, retryMs: 10 })
  try {
    equal(claim.isClaimed, false)
    match(claim.notReady().join(), /not known whether .*: unreachable/)
    isReachable = true
    await eventually(() => claim.isClaimed, 'it is claimed')
    deepEqual(claim.notReady(), [])
  } finally {
    claim.stop()
  }
})
