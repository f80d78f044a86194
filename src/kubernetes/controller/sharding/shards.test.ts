/** What a process reports about its membership, with a real server. */
import { deepEqual, equal, match, ok } from 'node:assert/strict'
import { after, afterEach, before, test } from 'node:test'
import { eventually } from '../../../../test/support/eventually.ts'
import { type Client, namespaceResource, type RequestOptions, type Response, WrappedClient } from '../../client/index.ts'
import { StatusError } from '../../object/index.ts'
import { startTestServer, type TestServer } from '../../testing/index.ts'
import type { Log } from '../../util/log.ts'
import { Manager } from '../manager.ts'
import type { ShardOptions } from './options.ts'

const durations = { leaseDurationMs: 3_000, renewDeadlineMs: 1_500, retryPeriodMs: 300 }
type Line = { level: string; text: string; err?: Error | undefined; [field: string]: unknown }

let api: TestServer
let rings = 0
const managers: Manager[] = []

before(async () => {
  api = await startTestServer()
})
after(() => api.close())
afterEach(async () => {
  await Promise.all(managers.splice(0).map(manager => manager.stop({ graceMs: 500 })))
})

/** Counts writes of Leases and fails those that a test forbids. */
class LeaseClient extends WrappedClient {
  writes = 0
  isForbidden: (options: RequestOptions) => boolean = () => false

  override async request(options: RequestOptions): Promise<Response> {
    if (options.path.includes('/leases')) {
      if (options.method !== 'GET') this.writes++
      if (this.isForbidden(options)) throw new StatusError('Forbidden', 'leases is forbidden')
    }
    return await this.inner.request(options)
  }
}

function recordedLog(): { lines: Line[]; log: Log } {
  const lines: Line[] = []
  const at = (level: string) => (fields: object, text: string) => void lines.push({ ...fields, level, text })
  const log: Log = { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error'), child: () => log }
  return { lines, log }
}

async function start(client: Client, shards: Partial<ShardOptions> = {}): Promise<{ manager: Manager; lines: Line[] }> {
  const { lines, log } = recordedLog()
  const ring = { name: `ring${rings++}`, namespace: 'default', slots: 1, ...durations, ...shards }
  const manager = new Manager({ client, log, shards: ring })
  managers.push(manager)
  await manager.start()
  return { manager, lines }
}

test('a ring in a namespace that does not exist is reported, tried again with a delay, and used as soon as it exists', async () => {
  const client = new LeaseClient(api.client)
  const { manager, lines } = await start(client, { namespace: 'nowhere' })
  const reasons = await eventually(
    () => manager.readyz().reasons,
    found => found.length > 0,
  )
  match(reasons.join(), /the namespace "nowhere" of the ring does not exist/)
  ok(lines.some(({ level, err }) => level === 'warn' && err?.message === 'the namespace "nowhere" of the ring does not exist'))
  const before = client.writes
  await new Promise(resolve => setTimeout(resolve, 1_000))
  // Half a retry period is 150 ms.
  ok(client.writes - before <= 8, `${client.writes - before} writes in 1 s`)
  await api.client.resource(namespaceResource).create({ metadata: { name: 'nowhere' } })
  await eventually(() => manager.shards?.counts().active === 1_024, 'all buckets')
  deepEqual(manager.readyz().reasons, [])
  equal(manager.shards?.slot, 0)
})
