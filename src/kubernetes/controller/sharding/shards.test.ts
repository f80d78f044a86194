/** What a process reports about its membership, with a real server. */
import { deepEqual, equal, match, ok } from 'node:assert/strict'
import { after, afterEach, before, test } from 'node:test'
import { eventually } from '../../../../test/support/eventually.ts'
import {
  type Client,
  configMapResource,
  leaseResource,
  namespaceResource,
  type RequestOptions,
  type Response,
  WrappedClient,
} from '../../client/index.ts'
import { StatusError } from '../../object/index.ts'
import { startTestServer, type TestServer } from '../../testing/index.ts'
import type { Log } from '../../util/log.ts'
import { controller } from '../controller.ts'
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
  const isReported = (text: string) => text.includes('the namespace "nowhere" of the ring does not exist')
  await eventually(() => manager.readyz().reasons.some(isReported), 'the reason')
  // On a machine under load the first failure, which is the one that is logged, may be a timeout.
  ok(lines.some(({ level, request }) => level === 'warn' && request === 'claim'))
  const before = client.writes
  await new Promise(resolve => setTimeout(resolve, 1_000))
  // Half a retry period is 150 ms.
  ok(client.writes - before <= 8, `${client.writes - before} writes in 1 s`)
  await api.client.resource(namespaceResource).create({ metadata: { name: 'nowhere' } })
  await eventually(() => manager.shards?.counts().active === 1_024, 'all buckets')
  deepEqual(manager.readyz().reasons, [])
  equal(manager.shards?.slot, 0)
})

test('a member that may not update Leases is not ready, before and after it loses the slot that it created', async () => {
  const client = new LeaseClient(api.client)
  client.isForbidden = ({ method }) => method === 'PUT'
  const name = `ring${rings++}`
  const { manager, lines } = await start(client, { name })
  await eventually(() => lines.some(({ text }) => text.startsWith('lost the slot')), 'the loss')
  // From the first failed renewal on, whatever lists succeed meanwhile.
  for (let count = 0; count < 30; count++) {
    match(manager.readyz().reasons.join(), /^no slot of the ring can be claimed: leases is forbidden$/)
    await new Promise(resolve => setTimeout(resolve, 20))
  }
  client.isForbidden = () => false
  await eventually(() => manager.shards?.counts().active === 1_024, 'all buckets')
  deepEqual(manager.readyz().reasons, [])
  // Each failed several times.
  deepEqual(
    lines.filter(({ level }) => level === 'warn').map(({ text, request, failures }) => [text.split(',')[0], request, failures]),
    [
      [`cannot update Lease default/${name}-0`, 'renew', 1],
      [`cannot update Lease default/${name}-0`, 'claim', 1],
    ],
  )
})

test('a claim whose Lease was never renewed is not ready, and names why', async () => {
  const client = new LeaseClient(api.client)
  client.isForbidden = ({ method }) => method === 'PUT'
  const { manager } = await start(client)
  await eventually(() => manager.shards?.slot === 0, 'a slot')
  const reasons = await eventually(
    () => manager.readyz().reasons,
    found => found.length > 0,
  )
  deepEqual(reasons, ['the Lease of slot 0 cannot be renewed: leases is forbidden'])
})

test('a member that the ring does not have for longer than a Lease is not ready', async () => {
  const client = new LeaseClient(api.client)
  client.isForbidden = ({ method, body }) => method === 'POST' && JSON.stringify(body).includes('-ring"')
  const { manager } = await start(client)
  await eventually(() => manager.shards?.slot === 0, 'a slot')
  deepEqual(manager.readyz().reasons, [])
  const reasons = await eventually(
    () => manager.readyz().reasons,
    found => found.length > 0,
  )
  deepEqual(reasons, ['the ring does not have the member of slot 0, for 3 s: leases is forbidden'])
})

test('a member whose caches are not filled for longer than a Lease is not ready', async () => {
  const gate = Promise.withResolvers<void>()
  class LateConfigMaps extends WrappedClient {
    override async request(options: RequestOptions) {
      if (options.path.includes('/configmaps')) await gate.promise
      return await super.request(options)
    }

    override async stream(options: RequestOptions) {
      if (options.path.includes('/configmaps')) await gate.promise
      return await super.stream(options)
    }
  }
  const client = new LateConfigMaps(api.client)
  const { log } = recordedLog()
  const manager = new Manager({ client, log, shards: { name: `ring${rings++}`, namespace: 'default', slots: 1, ...durations } })
  managers.push(manager)
  manager.add(controller({ name: 'maps', for: configMapResource, reconcile: async () => undefined }))
  const started = manager.start()
  const isLate = (text: string) => /^the ring has assigned 1024 buckets on which this process does not work yet, for 3 s$/.test(text)
  await eventually(() => manager.readyz().reasons.some(isLate), 'not ready')
  gate.resolve()
  await started
  await eventually(() => manager.readyz().ok, 'ready')
})

test('a replica on standby reports it once and is ready', async () => {
  const name = `ring${rings++}`
  const first = await start(api.client, { name, slots: 1 })
  await eventually(() => first.manager.shards?.slot === 0, 'the slot')
  const second = await start(api.client, { name, slots: 1 })
  const reports = () => second.lines.filter(({ text }) => text.endsWith('on standby'))
  await eventually(() => reports().length > 0, 'a report')
  await new Promise(resolve => setTimeout(resolve, durations.retryPeriodMs * 3))
  deepEqual(
    reports().map(({ level, text }) => [level, text]),
    [['info', 'the only slot is claimed; on standby']],
  )
  deepEqual(second.manager.readyz().reasons, [])
  equal(first.lines.filter(({ text }) => text.endsWith('on standby')).length, 0)
})

const lossesOf = (lines: readonly Line[]) => lines.filter(({ level, text }) => level === 'error' && text.startsWith('lost the slot'))

test('the reason of a lost slot is what happened to its Lease or to the process', async () => {
  const name = `ring${rings++}`
  const leases = api.client.resource(leaseResource)
  const client = new LeaseClient(api.client)
  const { manager, lines } = await start(client, { name })
  const untilActive = () => eventually(() => manager.shards?.counts().active === 1_024, 'all buckets')
  const untilLost = async (count: number) => {
    await eventually(() => lossesOf(lines).length === count, `${count} losses`)
    return lossesOf(lines).at(-1)!
  }
  await untilActive()
  await leases.patch(`${name}-0`, { spec: { holderIdentity: 'someone' } }, { type: 'merge', namespace: 'default' })
  const replaced = await untilLost(1)
  deepEqual([replaced.text, replaced.holder], ['lost the slot: another process holds its Lease', 'someone'])
  await untilActive()
  await leases.patch(`${name}-0`, { spec: { holderIdentity: '' } }, { type: 'merge', namespace: 'default' })
  equal((await untilLost(2)).text, 'lost the slot: another process released its Lease')
  await untilActive()
  await leases.delete(`${name}-0`, { namespace: 'default' })
  equal((await untilLost(3)).text, 'lost the slot: its Lease was deleted')
  await untilActive()
  client.isForbidden = ({ method }) => method === 'PUT'
  const expired = await untilLost(4)
  deepEqual([expired.text, expired.err?.message], ['lost the slot: its Lease was not renewed in time', 'leases is forbidden'])
  client.isForbidden = () => false
  await untilActive()
  // Stops the process, as SIGSTOP does.
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 2_200)
  equal((await untilLost(5)).text, 'lost the slot: this process did not run for 2 s')
})

test('a controller with sharded: false in a manager without leader election is reported, unless it needs no leader', async () => {
  const { lines, log } = recordedLog()
  const shards = { name: `ring${rings++}`, namespace: 'default', slots: 1, ...durations }
  const leaderElection = { leaseName: `lease${rings}`, namespace: 'default', identity: 'a' }
  const reconcile = async () => undefined
  for (const options of [{}, { leaderElection }]) {
    const manager = new Manager({ client: api.client, log, shards, ...options })
    managers.push(manager)
    manager.add(controller({ name: 'everywhere', for: configMapResource, sharded: false, reconcile }))
    manager.add(controller({ name: 'intended', for: configMapResource, sharded: false, needsLeader: false, reconcile }))
    manager.add(controller({ name: 'shared', for: configMapResource, reconcile }))
    await manager.start()
  }
  const warnings = lines.filter(({ text }) => text.includes('runs in every replica'))
  deepEqual(
    warnings.map(line => line.controller),
    ['everywhere'],
  )
})
