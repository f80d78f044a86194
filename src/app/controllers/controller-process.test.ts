import { equal, match, ok } from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { fetch } from 'undici'
import { eventually } from '../../../test/support/eventually.ts'
import { controllerFiguresOf, controllerLeaseName, type StackSpec, stackResource, systemNamespace } from '../../api/index.ts'
import { leaseResource, type RequestOptions, type Response, WrappedClient } from '../../kubernetes/client/index.ts'
import { type Log, silentLog } from '../../kubernetes/controller/index.ts'
import { StatusError } from '../../kubernetes/object/index.ts'
import { startTestServer } from '../../kubernetes/testing/index.ts'
import { AppStartError } from '../app-start-error.ts'
import { endpointName, readEndpoint } from '../discovery/index.ts'
import { startStoresProcess } from '../stores/stores-process.ts'
import { startControllerProcess } from './controller-process.ts'

/** What happens to requests for the address of the queue. */
class QueueEndpointClient extends WrappedClient {
  isForbidden = false
  /** Stops the process for this long after the next response to a read, as SIGSTOP does. */
  pauseMs = 0
  writes = 0

  override async request(options: RequestOptions): Promise<Response> {
    if (!options.path.endsWith(`/configmaps/${endpointName('queue')}`)) return await this.inner.request(options)
    if (options.method === 'PATCH') {
      if (this.isForbidden) throw new StatusError('Forbidden', 'configmaps is forbidden')
      this.writes++
      return await this.inner.request(options)
    }
    try {
      return await this.inner.request(options)
    } finally {
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, this.pauseMs)
      this.pauseMs = 0
    }
  }
}

test('a leader is ready when the address of its queue is published, and removes the address on a clean stop', async () => {
  await using api = await startTestServer()
  const client = new QueueEndpointClient(api.client)
  client.isForbidden = true
  const dataDir = mkdtempSync(join(tmpdir(), 'oarlock-controller-'))
  const address = { host: '127.0.0.1', port: 0 }
  const controller = await startControllerProcess({
    ...{ client, access: {}, cacheDir: join(dataDir, 'cache'), allowPaths: [], healthAddress: address, crds: 'install', version: 'test' },
    queue: { dataDir, listen: address, names: [] },
    // Two thirds of it are not a whole number of milliseconds.
    leaseDurationMs: 20_000,
    log: silentLog,
  })
  const ready = async () => {
    const response = await fetch(`${controller.httpUrl}/readyz`)
    return { status: response.status, text: await response.text() }
  }
  await controller.whenLeader
  const reported = await eventually(ready, ({ text }) => text.includes('(Forbidden)'))
  equal(reported.status, 503)
  match(reported.text, /^its address is not published \(Forbidden\)$/m)
  client.isForbidden = false
  await eventually(ready, ({ status }) => status === 200)
  equal((await readEndpoint(api.client, 'queue'))?.url.startsWith('https://127.0.0.1:'), true)
  // A console in another process shows them.
  const published = await eventually(async () => {
    const lease = await api.client.resource(leaseResource).get(controllerLeaseName, { namespace: systemNamespace })
    const names = controllerFiguresOf(lease).map(({ name }) => name)
    return names.length > 0 && names
  }, 'figures of the controllers')
  ok(published.includes('stack') && published.includes('disruption'), published.join(', '))
  await controller.stop({ graceMs: 5_000 })
  equal(await readEndpoint(api.client, 'queue'), undefined)
  rmSync(dataDir, { recursive: true, force: true })
})

test('a deleted Stack is kept until its states are deleted at the published address of the stores, and not at the API server', async () => {
  await using api = await startTestServer()
  const { client } = api
  const dataDir = mkdtempSync(join(tmpdir(), 'oarlock-controller-'))
  const address = { host: '127.0.0.1', port: 0 }
  const { url, adminToken, caCertificate } = api.server
  const access = { cluster: { server: url, token: adminToken, caCertificate } }
  const errors = new Set<string>()
  const report = (fields: object) => {
    if ('err' in fields) errors.add(String(fields.err))
  }
  const log: Log = { ...silentLog, error: report, warn: report, child: () => log }
  const controller = await startControllerProcess({
    ...{ client, access, cacheDir: join(dataDir, 'cache'), allowPaths: [], healthAddress: address, crds: 'install', version: 'test' },
    queue: { dataDir, listen: address, names: [] },
    log,
  })
  await controller.whenLeader
  const stacks = client.resource(stackResource)
  const at = { namespace: 'default' }
  const spec: StackSpec = { engine: 'command', source: { inline: { files: { a: '' } } }, command: { apply: ['true'] }, suspend: true }
  await stacks.create({ metadata: { name: 'app', ...at }, spec })
  await eventually(async () => (await stacks.get('app', at)).metadata.finalizers?.length === 1, 'the Stack to have its finalizer')
  await stacks.delete('app', at)
  const unknown = /the state of Stack default\/app cannot be deleted: no stores have published their address/
  await eventually(() => [...errors].some(text => unknown.test(text)), 'the error to be reported')
  const storesDir = join(dataDir, 'stores')
  const stores = await startStoresProcess({ client, dataDir: storesDir, listen: address, names: [], log: silentLog, onLost: () => {} })
  await eventually(async () => (await stacks.getOrUndefined('app', at)) === undefined, 'the Stack to be deleted')
  await controller.stop({ graceMs: 5_000 })
  await stores.stop()
  rmSync(dataDir, { recursive: true, force: true })
})

test('a former leader that was paused while it published the address of its queue does not write it', async () => {
  await using api = await startTestServer()
  const client = new QueueEndpointClient(api.client)
  client.pauseMs = 1_100
  const dataDir = mkdtempSync(join(tmpdir(), 'oarlock-controller-'))
  const address = { host: '127.0.0.1', port: 0 }
  const lost = Promise.withResolvers<void>()
  const controller = await startControllerProcess({
    ...{ client, access: {}, cacheDir: join(dataDir, 'cache'), allowPaths: [], healthAddress: address, crds: 'install', version: 'test' },
    queue: { dataDir, listen: address, names: [] },
    // It leads for two thirds of this after its last renewal.
    leaseDurationMs: 1_500,
    log: silentLog,
    onLeadershipChange: isLeading => !isLeading && lost.resolve(),
  })
  await lost.promise
  await controller.stop({ graceMs: 5_000 })
  equal(client.writes, 0)
  rmSync(dataDir, { recursive: true, force: true })
})

test('two processes with shards share the Stacks, and the one that remains works on those of the one that stops', async () => {
  await using api = await startTestServer()
  const { client } = api
  const address = { host: '127.0.0.1', port: 0 }
  const base = mkdtempSync(join(tmpdir(), 'oarlock-controller-'))
  const start = async (name: string) => {
    const dataDir = join(base, name)
    return await startControllerProcess({
      ...{ client, access: {}, cacheDir: join(dataDir, 'cache'), allowPaths: [], healthAddress: address, crds: 'install', version: 'test' },
      queue: { dataDir, listen: address, names: [] },
      ...{ shards: 2, leaseDurationMs: 5_000, log: silentLog },
    })
  }
  const first = await start('first')
  await first.whenLeader
  const second = await start('second')
  const shared = () => [first, second].map(each => each.share()?.buckets ?? 0)
  await eventually(shared, ([a = 0, b = 0]) => a > 400 && b > 400 && a + b === 1_024, 60_000)
  const stacks = client.resource(stackResource)
  const spec: StackSpec = { engine: 'command', source: { inline: { files: { a: '' } } }, command: { apply: ['true'] }, suspend: true }
  const create = async (name: string) => await stacks.create({ metadata: { name, namespace: 'default' }, spec })
  const areReconciled = async (names: readonly string[]) => {
    const { items } = await stacks.list({ namespace: 'default' })
    return names.every(name => items.some(({ metadata, status }) => metadata.name === name && status?.observedGeneration === 1))
  }
  const names = Array.from({ length: 20 }, (_, index) => `app-${index}`)
  await Promise.all(names.map(create))
  await eventually(() => areReconciled(names), 'all Stacks to be reconciled', 60_000)
  equal(first.share()?.slot === second.share()?.slot, false)
  await first.stop({ graceMs: 5_000 })
  await eventually(() => second.share()?.buckets === 1_024, 'the second process to have all buckets', 60_000)
  const later = names.map(name => `${name}-later`)
  await Promise.all(later.map(create))
  await eventually(() => areReconciled(later), 'the later Stacks to be reconciled', 60_000)
  await second.stop({ graceMs: 5_000 })
  rmSync(base, { recursive: true, force: true })
})

test('a process without shards does not start while others share the Stacks, and starts when they have stopped', async () => {
  await using api = await startTestServer()
  const address = { host: '127.0.0.1', port: 0 }
  const base = mkdtempSync(join(tmpdir(), 'oarlock-controller-'))
  const start = async (name: string, shards?: number) =>
    await startControllerProcess({
      ...{ client: api.client, access: {}, cacheDir: join(base, name, 'cache'), allowPaths: [], healthAddress: address, crds: 'install' },
      queue: { dataDir: join(base, name), listen: address, names: [] },
      ...{ shards, leaseDurationMs: 3_000, version: 'test', log: silentLog },
    })
  const sharded = await start('sharded', 2)
  await eventually(() => sharded.share()?.buckets === 1_024, 'all buckets')
  const error = await start('alone').then(
    () => undefined,
    (thrown: unknown) => thrown,
  )
  ok(error instanceof AppStartError, String(error))
  equal(error.kind, 'Shards')
  match(error.message, /^a process shares the Stacks, such as ".+", and this one has no --shards$/)
  await sharded.stop({ graceMs: 5_000 })
  const alone = await start('alone')
  await alone.whenLeader
  await alone.stop({ graceMs: 5_000 })
  rmSync(base, { recursive: true, force: true })
})
