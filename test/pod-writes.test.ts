/**
 * How many writes both controllers and the worker make for a quick Run in a Pod of its own. There is no kubelet: for each Pod the test calls what a worker
 * calls to register, to report its Run and to deregister.
 */
import { deepEqual, equal, ok } from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import {
  labels,
  runResource,
  type Stack,
  type StackSpec,
  stackFinalizer,
  systemNamespace,
  workerPoolResource,
  workerResource,
} from '../src/api/index.ts'
import { addDispatchController } from '../src/controllers/dispatch/index.ts'
import { addStackController } from '../src/controllers/stack/index.ts'
import { parseHollowProfile } from '../src/execution/worker/hollow/profile.ts'
import { simulateRun } from '../src/execution/worker/hollow/simulate-run.ts'
import { register } from '../src/execution/worker/lease/registration.ts'
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
  await client.resource(workerPoolResource).create({ metadata: { name: 'default' }, spec: { mode: 'Pod', max: 20, template } })
  manager = new Manager({ client: await counter.clientOf('controllers'), log: silentLog })
  const { placeNewRun } = addDispatchController(manager, { leaseDurationMs: 600_000, podWorkers: { environment: {} } })
  addStackController(manager, {
    placeNewRun,
    resolveRevision: async () => 'r1',
    checkSource: () => [],
    queuedReportRate: { qps: 0.1, burst: 4 },
  })
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
    pool: metadata.labels?.[labels.pool] ?? '',
    slots: 1,
    lifecycle: 'OneShot',
    labels: {},
    leaseDurationMs: 600_000,
    workerUid,
    podUid,
    statusInLease: { phase: 'Ready', idleSince: rfc3339(Date.now()) },
  } as const
  await register(worker, identity)
  const runs = worker.resource(runResource)
  const run = await eventually(
    async () => (await runs.listAll({ fieldSelector: `spec.workerName=${name}` })).items[0],
    `${name} to get a Run`,
  )
  const reporter = new RunReporter({ client: worker, run: run!, workerName: name, mayWrite: () => true })
  await simulateRun({ reporter, profile: parseHollowProfile({}), random: Math.random, sleep: ms => sleep(ms) })
  // The worker exits, and the kubelet reports it.
  await client.resource(podResource).patchStatus(name, { status: { phase: 'Succeeded' } }, { namespace: systemNamespace })
}

function takeCounts(): Record<string, number> {
  const counts: Record<string, number> = {}
  for (const write of counter.writes) counts[write] = (counts[write] ?? 0) + 1
  counter.writes.length = 0
  return counts
}

const spec: StackSpec = { engine: 'command', command: { apply: ['true'] }, source: { inline: { files: { f: '' } } }, historyLimit: 1 }
const untilNoWorkers = () =>
  eventually(async () => (await client.resource(workerResource).listAll()).items.length === 0, 'no Worker to remain')

test('while Runs wait in a long queue, few of their Stacks are written', async () => {
  const fixture = new StackFixture(client)
  const names = Array.from({ length: 16 }, (_, index) => `waiting-${index}`)
  const isObserved = ({ metadata, status }: Stack) => status?.observedGeneration === 1 && metadata.finalizers?.includes(stackFinalizer)
  await Promise.all(names.map(name => fixture.create(name, { ...spec, pool: 'later', suspend: true })))
  await Promise.all(names.map(name => fixture.until(name, 'observed', stack => isObserved(stack) === true)))
  takeCounts()
  await Promise.all(names.map(name => fixture.patch(name, { spec: { suspend: false } })))
  await Promise.all(names.map(name => eventually(async () => (await fixture.runsOf(name)).length === 1, `the Run of ${name}`)))
  await sleep(3_000)
  const isReported = ({ metadata, status }: Stack) => status?.observedGeneration === metadata.generation
  const reported = (await Promise.all(names.map(name => fixture.get(name)))).filter(isReported).length
  const statuses = takeCounts()['patch stacks/status'] ?? 0
  // Tokens of 0.1 per second come while the test runs.
  ok(reported >= 4 && reported <= 8, `${reported} Stacks are reported while they wait`)
  // And again with the reason why their Run waits.
  ok(statuses >= reported && statuses <= 2 * reported + 1, `${statuses} statuses, of ${reported} Stacks`)
  const template = { spec: { containers: [{ name: 'worker', image: 'oarlock:test' }] } }
  await client.resource(workerPoolResource).create({ metadata: { name: 'later' }, spec: { mode: 'Pod', max: 20, template } })
  await Promise.all(names.map(name => fixture.until(name, 'Ready', isReady)))
  await untilNoWorkers()
  const counts = takeCounts()
  for (const write of ['create workers', 'create pods', 'create leases', 'patch runs']) equal(counts[write], 16, write)
})

test('a quick Run in a Pod of its own costs 11 writes, of which 2 delete the Run before it and 1 claims the number of its worker', async () => {
  const fixture = new StackFixture(client)
  await fixture.create('app', { ...spec, variables: { change: 0 } })
  await fixture.until('app', 'Ready', isReady)
  const change = async (count: number) => {
    for (let number = 1; number <= count; number++) {
      await fixture.patch('app', { spec: { variables: { change: `${counter.writes.length}-${number}` } } })
      await fixture.until('app', 'Ready', isReady)
      await eventually(async () => (await fixture.runsOf('app')).length === 1, 'the previous Run is deleted')
      await Promise.all(playing)
      await untilNoWorkers()
    }
  }
  await change(2)
  counter.writes.length = 0
  const startedMs = performance.now()
  await change(10)
  const intervals = Math.ceil((performance.now() - startedMs) / 3_000)
  const { 'patch workerpools/status': statuses = 0, ...counts } = takeCounts()
  // The number of each worker is claimed; the counts are written every 3 s.
  ok(statuses >= 10 && statuses <= 10 + 2 * intervals, `${statuses} writes of the status of the pool`)
  deepEqual(counts, {
    // The controllers.
    'create runs': 10,
    'create workers': 10,
    'create pods': 10,
    // The assignment, and the removal of the finalizer of the oldest Run.
    'patch runs': 20,
    'patch stacks/status': 10,
    'delete runs': 10,
    // Each ends alone. The garbage collector deletes the Lease and the Pod.
    'delete workers': 10,
    // The worker, which registers with its Lease.
    'create leases': 10,
    'patch runs/status': 10,
  })
})

test('of Runs that end at the same time the Workers are deleted with few requests, which leave a Worker that has not ended', async () => {
  const fixture = new StackFixture(client)
  const names = Array.from({ length: 16 }, (_, index) => `many-${index}`)
  await Promise.all(names.map(name => fixture.create(name, { ...spec, variables: { change: 0 } })))
  await Promise.all(names.map(name => fixture.until(name, 'Ready', isReady)))
  await untilNoWorkers()
  takeCounts()
  const other = await client
    .resource(workerResource)
    .create({ metadata: { name: 'other' }, spec: { pool: 'default', slots: 1, lifecycle: 'OneShot' } })
  await Promise.all(names.map(name => fixture.patch(name, { spec: { variables: { change: 1 } } })))
  await Promise.all(names.map(name => fixture.until(name, 'Ready', isReady)))
  await eventually(async () => (await client.resource(workerResource).listAll()).items.length === 1, 'the Workers to be deleted')
  equal((await client.resource(workerResource).get('other')).metadata.uid, other.metadata.uid)
  const { 'delete workers': alone = 0, 'deletecollection workers': together = 0, ...counts } = takeCounts()
  ok(together >= 1 && alone + together <= 12, `${together} requests for several Workers and ${alone} for one, of 16`)
  equal(counts['create workers'], 16)
})
