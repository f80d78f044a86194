import { deepEqual, equal, ok } from 'node:assert/strict'
import { after, afterEach, before, test } from 'node:test'
import { eventually } from '../../../../test/support/eventually.ts'
import { leaseResource, type RequestOptions, type Response, WrappedClient } from '../../client/index.ts'
import { startTestServer, type TestServer } from '../../testing/index.ts'
import type { Log } from '../../util/log.ts'
import { Manager } from '../manager.ts'
import { ringLabel } from './lease-names.ts'

const durations = { leaseDurationMs: 2_000, renewDeadlineMs: 1_200, retryPeriodMs: 300 }

let api: TestServer
const managers: Manager[] = []

before(async () => {
  api = await startTestServer()
})
after(() => api.close())
afterEach(async () => {
  await Promise.all(managers.splice(0).map(manager => manager.stop({ graceMs: 500 })))
})

class CountingClient extends WrappedClient {
  creates = 0

  override async request(options: RequestOptions): Promise<Response> {
    if (options.path.endsWith('/leases') && options.method === 'POST') this.creates++
    return await this.inner.request(options)
  }
}

async function start(name: string): Promise<{ manager: Manager; client: CountingClient; warnings: object[] }> {
  const warnings: object[] = []
  const ignore = () => undefined
  const log: Log = {
    debug: ignore,
    info: ignore,
    warn: (fields: object) => void ('lease' in fields && warnings.push(fields)),
    error: ignore,
    child: () => log,
  }
  const client = new CountingClient(api.client)
  const manager = new Manager({ client, log, shards: { name, namespace: 'default', slots: 1, ...durations } })
  managers.push(manager)
  await manager.start()
  return { manager, client, warnings }
}

test('a ring whose Lease loses its label gets it again, and all buckets are worked on', async () => {
  const { manager, client, warnings } = await start('one')
  await eventually(() => manager.shards?.counts().active === 1_024, 'all buckets')
  const leases = api.client.resource(leaseResource)
  const { uid } = (await leases.get('one-ring', { namespace: 'default' })).metadata
  await leases.patch('one-ring', { metadata: { labels: { [ringLabel]: null } } }, { type: 'merge', namespace: 'default' })
  await eventually(() => warnings.length > 0, 'a warning')
  await eventually(() => manager.shards?.counts().active === 1_024, 'all buckets again')
  const { metadata } = await leases.get('one-ring', { namespace: 'default' })
  deepEqual([metadata.uid, metadata.labels], [uid, { [ringLabel]: 'one' }])
  ok(client.creates <= 5, `${client.creates} creates`)
})

test('Leases that exist without the label of the ring are used', async () => {
  const leases = api.client.resource(leaseResource)
  for (const name of ['two-0', 'two-ring']) await leases.create({ metadata: { name, namespace: 'default' }, spec: {} })
  const { manager, client, warnings } = await start('two')
  await eventually(() => manager.shards?.counts().active === 1_024, 'all buckets')
  deepEqual(warnings, [{ lease: 'default/two-0' }, { lease: 'default/two-ring' }])
  equal(client.creates, 2)
})
