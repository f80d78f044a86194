/** How many writes all processes make for a change of a Stack: both controllers and a warm worker. */
import { deepEqual, ok } from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { type StackSpec, systemNamespace, workerPoolResource } from '../src/api/index.ts'
import { addDispatchController } from '../src/controllers/dispatch/index.ts'
import { addStackController } from '../src/controllers/stack/index.ts'
import { hollowWorkers } from '../src/execution/worker/index.ts'
import { type Client, namespaceResource } from '../src/kubernetes/client/index.ts'
import { Manager, silentLog } from '../src/kubernetes/controller/index.ts'
import { eventually } from './support/eventually.ts'
import { isReady, StackFixture } from './support/stacks.ts'
import { WriteCounter } from './support/write-counter.ts'

let counter: WriteCounter
let client: Client
let manager: Manager

before(async () => {
  counter = await WriteCounter.start(['controllers', 'worker'])
  client = counter.client
  const namespaces = client.resource(namespaceResource)
  if (!(await namespaces.getOrUndefined(systemNamespace))) await namespaces.create({ metadata: { name: systemNamespace } })
  await client.resource(workerPoolResource).create({ metadata: { name: 'default' }, spec: { mode: 'External' } })
  manager = new Manager({ client: await counter.clientOf('controllers'), log: silentLog })
  const { placeNewRun } = addDispatchController(manager, { leaseDurationMs: 600_000 })
  addStackController(manager, { placeNewRun, resolveRevision: async () => 'r1', checkSource: () => [] })
  await manager.start()
})
after(async () => {
  await manager?.stop({ graceMs: 2_000 })
  await counter?.close()
})

test('a change of a Stack whose Run is quick costs five writes, and at most one each 3 s for counts and for the status of the worker', async () => {
  const { HollowFleet, parseHollowProfile } = await hollowWorkers()
  // The reporters of real workers; the Lease is renewed once a minute, so that renewals do not occur here.
  const fleet = new HollowFleet({
    ...{ client: await counter.clientOf('worker'), prefix: 'w', workers: 1, pool: 'default', renewMs: 60_000 },
    profile: parseHollowProfile({}),
  })
  await fleet.start()
  try {
    const fixture = new StackFixture(client)
    const spec: StackSpec = { engine: 'command', command: { apply: ['true'] }, source: { inline: { files: { f: '' } } }, historyLimit: 1 }
    await fixture.create('app', { ...spec, variables: { change: 0 } })
    await fixture.until('app', 'Ready', isReady)
    const change = async (count: number) => {
      for (let number = 1; number <= count; number++) {
        await fixture.patch('app', { spec: { variables: { change: `${counter.writes.length}-${number}` } } })
        await fixture.until('app', 'Ready', isReady)
        await eventually(async () => (await fixture.runsOf('app')).length === 1, 'the previous Run is deleted')
      }
    }
    await change(2)
    counter.writes.length = 0
    const startedMs = performance.now()
    await change(10)
    const intervals = Math.ceil((performance.now() - startedMs) / 3_000)
    const counts = new Map<string, number>()
    for (const write of counter.writes) counts.set(write, (counts.get(write) ?? 0) + 1)
    for (const status of ['patch workerpools/status', 'patch workers/status']) {
      ok((counts.get(status) ?? 0) <= intervals, `${counts.get(status)} times "${status}" in ${intervals} intervals of 3 s`)
      counts.delete(status)
    }
    deepEqual(Object.fromEntries(counts), {
      'create runs': 10,
      // The removal of the finalizer of the oldest Run. A Run is created with its worker.
      'patch runs': 10,
      'patch runs/status': 10,
      'patch stacks/status': 10,
      'delete runs': 10,
    })
  } finally {
    await fleet.stop()
  }
})
