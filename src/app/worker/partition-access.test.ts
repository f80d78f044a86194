import { deepEqual, equal, notEqual, rejects } from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { eventually } from '../../../test/support/eventually.ts'
import { type Run, systemNamespace } from '../../api/index.ts'
import { partitionResource } from '../../gateway/index.ts'
import { configMapResource, createClient, installKinds, namespaceResource } from '../../kubernetes/client/index.ts'
import { type ApiServer, startServer } from '../../kubernetes/server/index.ts'
import { areInDifferentPartitions, partitionNumberOf } from '../../kubernetes/util/index.ts'
import { endpointName } from '../discovery/endpoint-entry.ts'
import { PartitionAccess, readPartitions } from './partition-access.ts'

/** A server that has the Partitions, and the server of partition 7. Workers have one token for both, as with a common key. */
async function start(t: TestContext, options: { idleMs?: number; patienceMs?: number } = {}) {
  const root = mkdtempSync(join(tmpdir(), 'oarlock-partition-access-'))
  const stops: (() => Promise<unknown>)[] = []
  t.after(async () => {
    for (const stop of stops.reverse()) await stop()
    rmSync(root, { recursive: true, force: true, maxRetries: 5 })
  })
  const serve = async (partition: number): Promise<ApiServer> => {
    const server = await startServer({ dataDir: join(root, String(partition)), listen: { port: 0 }, partition })
    stops.push(() => server.close({ graceMs: 10 }))
    return server
  }
  const connect = async (server: ApiServer) => {
    const client = await createClient({ kubeconfig: server.kubeconfigPath })
    stops.push(() => client.close())
    return client
  }
  const [home, seventh] = [await serve(0), await serve(7)]
  const client = await connect(home)
  await installKinds(client, [partitionResource])
  const spec = { number: 7, server: seventh.url, caCertificate: seventh.caCertificate, roles: ['Tenants' as const] }
  await client.resource(partitionResource).create({ metadata: { name: 't7' }, spec })
  const token = seventh.issueToken({ name: 'admin', groups: ['system:masters'], ttlMs: 60_000 })
  const access = new PartitionAccess({ client, token, caCertificate: home.caCertificate, log: { warn: () => {} }, ...options })
  stops.push(() => access.close())
  const inSeventh = await connect(seventh)
  const { metadata } = await inSeventh.resource(configMapResource).create({ metadata: { name: 'run', namespace: 'default' } })
  const runAt = (resourceVersion: string) => ({ metadata: { name: 'run', namespace: 'default', resourceVersion } }) as unknown as Run
  return { access, client, home, seventh, inSeventh, run: runAt(metadata.resourceVersion), runAt, serve }
}

test('the partition of a Run is that of its resource version, and its stores are those that it has published', async t => {
  const { access, seventh, inSeventh, run } = await start(t)
  equal(partitionNumberOf(run.metadata.resourceVersion), 7)
  const own = await access.open(run, undefined)
  // None are published: they are served by the API server itself.
  deepEqual([own?.client.server, own?.storeUrl, own?.storeCaCertificate], [seventh.url, seventh.url, seventh.caCertificate])
  equal((await own?.client.resource(configMapResource).get('run', { namespace: 'default' }))?.metadata.name, 'run')

  await inSeventh.resource(namespaceResource).apply({ metadata: { name: systemNamespace } }, { force: true })
  const metadata = { name: endpointName('stores'), namespace: systemNamespace }
  await inSeventh.resource(configMapResource).create({ metadata, data: { url: 'https://127.0.0.1:7', 'ca.crt': 'a CA' } })
  equal((await access.open(run, undefined))?.client, own?.client, 'one client for all Runs of a partition')
  equal(access.size, 1)
  const other = await start(t)
  await other.inSeventh.resource(namespaceResource).apply({ metadata: { name: systemNamespace } }, { force: true })
  await other.inSeventh.resource(configMapResource).create({ metadata, data: { url: 'https://127.0.0.1:7', 'ca.crt': 'a CA' } })
  const published = await other.access.open(other.run, undefined)
  deepEqual([published?.storeUrl, published?.storeCaCertificate], ['https://127.0.0.1:7', 'a CA'])
})

test('a partition without a Run is disconnected after a while, and connected again', async t => {
  const { access, run } = await start(t, { idleMs: 1 })
  const [first, second] = [await access.open(run, undefined), await access.open(run, undefined)]
  first?.release()
  await new Promise(resolve => setTimeout(resolve, 20))
  equal(access.size, 1, 'it has another Run')
  second?.release()
  await eventually(() => access.size === 0, 'the end of the connection')
  const again = await access.open(run, undefined)
  notEqual(again?.client, first?.client)
  equal((await again?.client.resource(configMapResource).get('run', { namespace: 'default' }))?.metadata.name, 'run')
})

test('a partition whose server has another address is connected again, and Runs that have begun keep their connection', async t => {
  const { access, client, run, serve } = await start(t)
  const first = await access.open(run, undefined)
  const eighth = await serve(8)
  const patch = { spec: { server: eighth.url, caCertificate: eighth.caCertificate } }
  await client.resource(partitionResource).patch('t7', patch as object, { type: 'merge' })
  const second = await access.open(run, undefined).catch(() => undefined)
  // Its token is not valid there; the address was used.
  equal(second?.client.server ?? eighth.url, eighth.url)
  equal((await first?.client.resource(configMapResource).get('run', { namespace: 'default' }))?.metadata.name, 'run')
})

test('while home does not answer, a Partition that was read before is used as it was', async t => {
  const { client, home, run, seventh } = await start(t)
  const partitions = await readPartitions(client)
  const token = seventh.issueToken({ name: 'admin', groups: ['system:masters'], ttlMs: 60_000 })
  const options = { client, token, caCertificate: undefined, log: { warn: () => {} }, patienceMs: 1 }
  const access = new PartitionAccess({ ...options, partitions })
  const without = new PartitionAccess(options)
  await home.close({ graceMs: 10 })
  equal((await access.open(run, undefined))?.client.server, seventh.url)
  await rejects(without.open(run, undefined))
  await access.close()
})

test('a number that no Partition has is an error that names it, after the time that it was waited for', async t => {
  const { access, runAt } = await start(t, { patienceMs: 1 })
  await rejects(access.open(runAt('1'), undefined), /no Partition has number 0, which is that of the resource version of the Run/)
})

for (const [name, version, other, expected] of [
  ['versions of one partition', 20e13, 20e13 + 1, false],
  ['versions of two partitions', 20e13, 20e13 + 128, true],
  ['revisions of etcd, which may be any number', 12_345, 99_999_999, false],
  ['a Worker whose version is not known', 20e13, undefined, false],
] as const)
  test(`${name} are ${expected ? '' : 'not '}in different partitions`, () =>
    equal(areInDifferentPartitions(String(version), other === undefined ? undefined : String(other)), expected))
