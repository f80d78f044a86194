import { deepEqual, equal } from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { eventually } from '../../../../../test/support/eventually.ts'
import { labels, oarlockResources, systemNamespace, type WorkerPool, workerPoolResource, workerResource } from '../../../../api/index.ts'
import { namespaceResource } from '../../../../kubernetes/client/index.ts'
import { Manager, type ShardOptions, silentLog } from '../../../../kubernetes/controller/index.ts'
import { startTestServer, type TestServer } from '../../../../kubernetes/testing/index.ts'
import { type Budget, budgetResource, busyWorkersBudget, replaceBudget } from './busy-workers-budget.ts'
import { addDisruptionController } from './disruption-controller.ts'
import { podResource } from './pod.ts'

const name = 'oarlock-busy-p'
const namespace = systemNamespace

let api: TestServer
let manager: Manager
let pool: WorkerPool

const budgets = () => api.client.resource(budgetResource)
const read = async () => await budgets().getOrUndefined(name, { namespace })
const isOf = (budget: Budget | undefined, { metadata }: WorkerPool) =>
  budget !== undefined &&
  budget.metadata.deletionTimestamp === undefined &&
  replaceBudget(budget, busyWorkersBudget({ name: 'p', uid: metadata.uid }, namespace, labels.pool)) === undefined
const protectionOf = async (expected: WorkerPool) => await eventually(read, budget => isOf(budget, expected))

const startManager = async (shards?: ShardOptions) => {
  const started = new Manager({ client: api.client, log: silentLog, shards })
  addDisruptionController(started, { monotonicMs: () => performance.now() })
  await started.start()
  return started
}

before(async () => {
  api = await startTestServer({ kinds: oarlockResources })
  const { client } = api
  await client.resource(namespaceResource).apply({ metadata: { name: namespace } }, { force: true })
  pool = await client.resource(workerPoolResource).create({ metadata: { name: 'p' }, spec: { mode: 'Pod' } })
  // Of a user: it allows every eviction, and has no label of Oarlock.
  const spec = { maxUnavailable: '100%', selector: { matchLabels: { app: 'web' } } }
  await budgets().create({ metadata: { name, namespace, labels: { team: 'a' } }, spec })
  manager = await startManager()
  const pod = { namespace, serviceAccountName: 'oarlock-worker' }
  const { metadata } = await client
    .resource(workerResource)
    .create({ metadata: { name: 'w1' }, spec: { pool: 'p', slots: 1, lifecycle: 'OneShot', pod } })
  const owner = { apiVersion: 'oarlock.dev/v1alpha1', kind: 'Worker', name: 'w1', uid: metadata.uid, controller: true }
  await client.resource(podResource).create({
    metadata: { name: 'w1', namespace, labels: { [labels.pool]: 'p' }, ownerReferences: [owner] },
    spec: { containers: [{ name: 'worker', image: 'i' }] },
  })
})
after(async () => {
  await manager?.stop()
  await api?.[Symbol.asyncDispose]()
})

test('a PodDisruptionBudget that a user created with its name is replaced, and keeps its other labels', { timeout: 60_000 }, async () => {
  const budget = await protectionOf(pool)
  deepEqual(budget?.spec, { minAvailable: 1_000_000, selector: { matchLabels: { [labels.pool]: 'p', [labels.busy]: 'true' } } })
  equal(budget?.metadata.labels?.team, 'a')
})

test('one that was deleted is created again', { timeout: 60_000 }, async () => {
  const deleted = await read()
  await budgets().delete(name, { namespace })
  const created = await protectionOf(pool)
  equal(created?.metadata.uid === deleted?.metadata.uid, false)
})

for (const [change, patch] of [
  ['selects other Pods', { spec: { selector: { matchLabels: { app: 'web' } } } }],
  ['requires fewer Pods', { spec: { minAvailable: 0 } }],
  ['has no owner', { metadata: { ownerReferences: [] } }],
  ['lost its label, and so is no longer cached', { metadata: { labels: { [labels.pool]: null } } }],
] as const)
  test(`one that ${change} is replaced`, { timeout: 60_000 }, async () => {
    const { metadata } = await budgets().patch(name, patch, { type: 'merge', namespace })
    await eventually(read, budget => budget?.metadata.resourceVersion !== metadata.resourceVersion && isOf(budget, pool))
  })

test('a pool that is deleted and created again owns it', { timeout: 60_000 }, async () => {
  const pools = api.client.resource(workerPoolResource)
  await pools.delete('p')
  await eventually(async () => (await pools.getOrUndefined('p')) === undefined, 'the pool to be deleted')
  const created = await pools.create({ metadata: { name: 'p' }, spec: { mode: 'Pod' } })
  await protectionOf(created)
})

test('with shards, one that does not exist is created too', { timeout: 60_000 }, async () => {
  await manager.stop()
  await budgets().delete(name, { namespace })
  manager = await startManager({ name: 'controllers', namespace, slots: 2 })
  const current = await api.client.resource(workerPoolResource).get('p')
  await protectionOf(current)
  await budgets().delete(name, { namespace })
  await protectionOf(current)
})
