/** How many writes dispatch makes for a Run: its part of the 5 API writes per Run over all processes. */
import { deepEqual, equal, ok } from 'node:assert/strict'
import { after, before, test } from 'node:test'
import {
  labels,
  type Run,
  runResource,
  type Stack,
  stackResource,
  systemNamespace,
  tenantResource,
  workerPoolResource,
  workerResource,
} from '../src/api/index.ts'
import { addDispatchController } from '../src/controllers/dispatch/index.ts'
import { type Client, leaseResource, namespaceResource } from '../src/kubernetes/client/index.ts'
import { Manager, silentLog } from '../src/kubernetes/controller/index.ts'
import { rfc3339 } from '../src/kubernetes/object/index.ts'
import { eventually } from './support/eventually.ts'
import { WriteCounter } from './support/write-counter.ts'

const user = 'dispatch-controller'
let counter: WriteCounter
let client: Client
let manager: Manager
let stack: Stack
const runs = () => client.resource(runResource)

before(async () => {
  counter = await WriteCounter.start([user])
  client = counter.client
  const namespaces = client.resource(namespaceResource)
  if (!(await namespaces.getOrUndefined(systemNamespace))) await namespaces.create({ metadata: { name: systemNamespace } })
  await client.resource(workerPoolResource).create({ metadata: { name: 'default' }, spec: { mode: 'External' } })
  await client.resource(tenantResource).create({ metadata: { name: 'team' }, spec: { namespaces: ['default'] } })
  stack = await client.resource(stackResource).create({
    metadata: { name: 'app', namespace: 'default' },
    spec: { engine: 'command', command: { apply: ['true'] }, source: { inline: { files: { f: '' } } } },
  })
  const metadata = { name: 'w', labels: { [labels.pool]: 'default' } }
  await client.resource(leaseResource).create({ metadata: { ...metadata, namespace: systemNamespace }, spec: { holderIdentity: 'w' } })
  await client.resource(workerResource).create({ metadata, spec: { pool: 'default', slots: 100, lifecycle: 'Warm' } })
  await client.resource(workerResource).patchStatus('w', { status: { phase: 'Ready' } })
  manager = new Manager({ client: await counter.clientOf(user), log: silentLog })
  addDispatchController(manager, { leaseDurationMs: 600_000 })
  await manager.start()
})
after(async () => {
  await manager?.stop({ graceMs: 2_000 })
  await counter?.close()
})

async function createRun(epoch: number): Promise<Run> {
  const { spec, metadata } = stack
  return await runs().create({
    metadata: { name: `app-${epoch}`, namespace: 'default' },
    spec: {
      type: 'Apply',
      stackRef: { name: 'app', uid: metadata.uid, generation: 1 },
      epoch,
      stack: spec,
      revision: 'r',
      inputsDigest: 'i',
      reason: 'NewGeneration',
      pool: 'default',
      priority: 0,
    },
  })
}

/** Acts as the worker: starts and ends the Run as soon as it is assigned. */
async function execute({ metadata: { name } }: Run): Promise<void> {
  const assigned = await eventually(async () => {
    const run = await runs().get(name)
    return run.spec.workerName === 'w' && run
  }, `the assignment of ${name}`)
  ok(assigned)
  await runs().patchStatus(name, { status: { phase: 'Applying' } })
  await runs().patchStatus(name, { status: { phase: 'Succeeded', finishedAt: rfc3339(Date.now()) } })
}

const countOf = (write: string) => counter.writes.filter(other => other === write).length

test('a Run that is placed immediately costs dispatch one write; the counts of pools and tenants are written every 3 s', async () => {
  const count = 50
  await eventually(async () => (await client.resource(workerPoolResource).get('default')).status?.workers === 1, 'the Worker is counted')
  await eventually(async () => (await client.resource(tenantResource).get('team')).status !== undefined, 'the status of the Tenant')
  counter.writes.length = 0
  const startedMs = performance.now()
  for (let epoch = 1; epoch <= count; epoch++) await execute(await createRun(epoch))
  const intervals = Math.ceil((performance.now() - startedMs) / 3_000)
  deepEqual(new Set(counter.writes).difference(new Set(['patch runs', 'patch workerpools/status', 'patch tenants/status'])), new Set())
  equal(countOf('patch runs'), count)
  for (const status of ['patch workerpools/status', 'patch tenants/status'])
    ok(countOf(status) <= intervals, `${countOf(status)} times "${status}" in ${intervals} intervals of 3 s`)
})

test('the deletion of an ended Run costs dispatch one write, which removes the finalizer once the status of the Stack includes its end', async () => {
  await eventually(() => countOf('patch runs') === 50, 'the previous test')
  counter.writes.length = 0
  const setCounted = (epoch: number) => {
    const lastRun = { name: `app-${epoch}`, type: 'Apply', phase: 'Succeeded', reason: 'NewGeneration' }
    return client.resource(stackResource).patchStatus('app', { status: { lastRunNumber: epoch, lastRun } }, { namespace: 'default' })
  }
  await setCounted(49)
  for (let epoch = 50; epoch >= 1; epoch--) await runs().delete(`app-${epoch}`)
  const names = async () => (await runs().list({ namespace: 'default' })).items.map(({ metadata }) => metadata.name)
  await eventually(async () => (await names()).length === 1, 'all Runs but one are deleted')
  deepEqual(await names(), ['app-50'])
  await setCounted(50)
  await eventually(async () => (await runs().list({ namespace: 'default' })).items.length === 0, 'all Runs are deleted')
  equal(countOf('patch runs'), 50)
})
