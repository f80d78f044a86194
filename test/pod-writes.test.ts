/**
 * How many writes both controllers and the worker make for a quick Run in a Pod of its own. There is no kubelet: for each Pod the test calls what a worker
 * calls to register, to report its Run and to deregister.
 */
import { deepEqual, ok } from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { runResource, type StackSpec, systemNamespace, workerPoolResource } from '../src/api/index.ts'
import { addDispatchController } from '../src/controllers/dispatch/index.ts'
import { addStackController } from '../src/controllers/stack/index.ts'
import { parseHollowProfile } from '../src/execution/worker/hollow/profile.ts'
import { simulateRun } from '../src/execution/worker/hollow/simulate-run.ts'
import { deregister, register } from '../src/execution/worker/lease/registration.ts'
import { RunReporter } from '../src/execution/worker/run/run-reporter.ts'
import { type Client, namespaceResource } from '../src/kubernetes/client/index.ts'
import { Manager, silentLog } from '../src/kubernetes/controller/index.ts'
import { describeResource, type KubeObject, rfc3339 } from '../src/kubernetes/object/index.ts'
import { eventually } from './support/eventually.ts'
import { isReady, StackFixture } from './support/stacks.ts'
import { WriteCounter } from './support/write-counter.ts'

const podResource = describeResource<object>({ group: '', version: 'v1', kind: 'Pod', plural: 'pods', scope: 'Namespaced' })

let counter: WriteCounter
let client: Client
let worker: Client
let manager: Manager
const playing: Promise<void>[] = []

before(async () => {
  counter = await WriteCounter.start(['controllers', 'worker'])
  client = counter.client
  worker = await counter.clientOf('worker')
  const namespaces = client.resource(namespaceResource)
  if (!(await namespaces.getOrUndefined(systemNamespace))) await namespaces.create({ metadata: { name: systemNamespace } })
  const template = { spec: { containers: [{ name: 'worker', image: 'oarlock:test' }] } }
  await client.resource(workerPoolResource).create({ metadata: { name: 'default' }, spec: { mode: 'Pod', template } })
  manager = new Manager({ client: await counter.clientOf('controllers'), log: silentLog })
  const { placeNewRun } = addDispatchController(manager, { leaseDurationMs: 600_000, podWorkers: { environment: {} } })
  addStackController(manager, { placeNewRun, resolveRevision: async () => 'r1', checkSource: () => [] })
  manager.informer(podResource).onChange({ added: pod => void playing.push(playWorker(pod)) })
  await manager.start()
})
after(async () => {
  await manager?.stop({ graceMs: 2_000 })
  await counter?.close()
})

async function playWorker({ metadata }: KubeObject<object>): Promise<void> {
  const { name, uid: podUid, ownerReferences } = metadata
  const workerUid = ownerReferences?.[0]?.uid
  const identity = {
    name,
    pool: 'default',
    slots: 1,
    lifecycle: 'OneShot',
    labels: {},
    leaseDurationMs: 600_000,
    workerUid,
    podUid,
    statusInLease: { phase: 'Ready', idleSince: rfc3339(Date.now()) },
  } as const
  const registration = await register(worker, identity)
  const runs = worker.resource(runResource)
  const run = await eventually(
    async () => (await runs.listAll({ fieldSelector: `spec.workerName=${name}` })).items[0],
    `${name} to get a Run`,
  )
  const reporter = new RunReporter({ client: worker, run: run!, workerName: name, mayWrite: () => true })
  await simulateRun({ reporter, profile: parseHollowProfile({}), random: Math.random, sleep: ms => sleep(ms) })
  await deregister(worker, name, registration, {
    onError: error => {
      throw error
    },
  })
}

test('a quick Run in a Pod of its own costs 11 writes, of which 2 delete the Run before it and 1 claims the number of its worker', async () => {
  const fixture = new StackFixture(client)
  const spec: StackSpec = { engine: 'command', command: { apply: ['true'] }, source: { inline: { files: { f: '' } } }, historyLimit: 1 }
  await fixture.create('app', { ...spec, variables: { change: 0 } })
  await fixture.until('app', 'Ready', isReady)
  const change = async (count: number) => {
    for (let number = 1; number <= count; number++) {
      await fixture.patch('app', { spec: { variables: { change: `${counter.writes.length}-${number}` } } })
      await fixture.until('app', 'Ready', isReady)
      await eventually(async () => (await fixture.runsOf('app')).length === 1, 'the previous Run is deleted')
      await Promise.all(playing)
    }
  }
  await change(2)
  counter.writes.length = 0
  const startedMs = performance.now()
  await change(10)
  const intervals = Math.ceil((performance.now() - startedMs) / 3_000)
  const counts = new Map<string, number>()
  for (const write of counter.writes) counts.set(write, (counts.get(write) ?? 0) + 1)
  // The number of each worker is claimed; the counts are written every 3 s.
  const statuses = counts.get('patch workerpools/status') ?? 0
  ok(statuses >= 10 && statuses <= 10 + 2 * intervals, `${statuses} writes of the status of the pool`)
  counts.delete('patch workerpools/status')
  deepEqual(Object.fromEntries(counts), {
    // The controllers.
    'create runs': 10,
    'create workers': 10,
    'create pods': 10,
    // The assignment, and the removal of the finalizer of the oldest Run.
    'patch runs': 20,
    'patch stacks/status': 10,
    'delete runs': 10,
    // The worker, which registers with its Lease. The garbage collector deletes it and the Pod.
    'create leases': 10,
    'patch runs/status': 10,
    'delete workers': 10,
  })
})
