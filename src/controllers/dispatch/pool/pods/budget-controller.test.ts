import { deepEqual, equal } from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { eventually } from '../../../../../test/support/eventually.ts'
import { labels, oarlockResources, systemNamespace, workerPoolResource, workerResource } from '../../../../api/index.ts'
import { namespaceResource } from '../../../../kubernetes/client/index.ts'
import { Manager, type ShardOptions, silentLog } from '../../../../kubernetes/controller/index.ts'
import { startTestServer, type TestServer } from '../../../../kubernetes/testing/index.ts'
import { type Budget, type BudgetInput, budgetResource, busyWorkersBudget, decideBudget, replaceBudget } from './busy-workers-budget.ts'
import { addDisruptionController } from './disruption-controller.ts'
import { podResource } from './pod.ts'

const name = 'oarlock-busy-p'
const namespace = systemNamespace

let api: TestServer
let manager: Manager

const budgets = () => api.client.resource(budgetResource)
const read = async () => await budgets().getOrUndefined(name, { namespace })
const isProtecting = (budget: Budget | undefined) =>
  budget !== undefined &&
  budget.metadata.deletionTimestamp === undefined &&
  replaceBudget(budget, busyWorkersBudget('p', namespace, labels.pool)) === undefined
const protection = async () => (await eventually(read, isProtecting))!

const owner = (kind: string, of: string, uid: string) => ({ apiVersion: 'oarlock.dev/v1alpha1', kind, name: of, uid, controller: true })
const podOf = (worker: string, uid: string) => ({
  metadata: { name: worker, namespace, labels: { [labels.pool]: 'p' }, ownerReferences: [owner('Worker', worker, uid)] },
  spec: { containers: [{ name: 'worker', image: 'i' }] },
})

/** A worker of the pool, and its Pod. */
async function createPod(worker: string): Promise<void> {
  const pod = { namespace, serviceAccountName: 'oarlock-worker' }
  const spec = { pool: 'p', slots: 1, lifecycle: 'OneShot' as const, pod }
  const { metadata } = await api.client.resource(workerResource).create({ metadata: { name: worker }, spec })
  await api.client.resource(podResource).create(podOf(worker, metadata.uid))
}

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
  await client.resource(workerPoolResource).create({ metadata: { name: 'p' }, spec: { mode: 'Pod' } })
  // Of a user: it allows every eviction, and has no label of Oarlock.
  const spec = { maxUnavailable: '100%', selector: { matchLabels: { app: 'web' } } }
  await budgets().create({ metadata: { name, namespace, labels: { team: 'a' } }, spec })
  manager = await startManager()
  await createPod('w1')
})
after(async () => {
  await manager?.stop()
  await api?.[Symbol.asyncDispose]()
})

test('a PodDisruptionBudget that a user created with its name is replaced, and keeps its other labels', { timeout: 60_000 }, async () => {
  const budget = await protection()
  deepEqual(budget?.spec, { minAvailable: 1_000_000, selector: { matchLabels: { [labels.pool]: 'p', [labels.busy]: 'true' } } })
  equal(budget?.metadata.labels?.team, 'a')
})

test('one that was deleted is created again', { timeout: 60_000 }, async () => {
  const deleted = await read()
  await budgets().delete(name, { namespace })
  const created = await protection()
  equal(created?.metadata.uid === deleted?.metadata.uid, false)
})

for (const [change, patch] of [
  ['selects other Pods', { spec: { selector: { matchLabels: { app: 'web' } } } }],
  ['requires fewer Pods', { spec: { minAvailable: 0 } }],
  ['has an owner, as those of earlier versions', { metadata: { ownerReferences: [owner('WorkerPool', 'p', 'uid-of-the-pool')] } }],
  ['lost its label, and so is no longer cached', { metadata: { labels: { [labels.pool]: null } } }],
] as const)
  test(`one that ${change} is replaced`, { timeout: 60_000 }, async () => {
    const { metadata } = await budgets().patch(name, patch, { type: 'merge', namespace })
    await eventually(read, budget => budget?.metadata.resourceVersion !== metadata.resourceVersion && isProtecting(budget))
  })

test('with shards, one that does not exist is created too', { timeout: 60_000 }, async () => {
  await manager.stop()
  await budgets().delete(name, { namespace })
  manager = await startManager({ name: 'controllers', namespace, slots: 2 })
  await protection()
  await budgets().delete(name, { namespace })
  await protection()
})

test('one whose pool is deleted remains until its last worker has ended, and others with its label remain', {
  timeout: 60_000,
}, async () => {
  const { client } = api
  const spec = { minAvailable: 0, selector: { matchLabels: { app: 'web' } } }
  await budgets().create({ metadata: { name: 'of-a-user', namespace, labels: { [labels.pool]: 'p' } }, spec })
  const { metadata } = await protection()
  const pools = client.resource(workerPoolResource)
  await pools.delete('p')
  await eventually(async () => (await pools.getOrUndefined('p')) === undefined, 'the pool to be deleted')
  // Another process leads when the Pod ends.
  await manager.stop()
  manager = await startManager()
  await createPod('w2')
  await client.resource(podResource).patchStatus('w1', { status: { phase: 'Succeeded' } }, { namespace })
  await budgets().patch(name, { spec: { minAvailable: 0 } }, { type: 'merge', namespace })
  equal((await protection()).metadata.uid, metadata.uid)
  await client.resource(podResource).patchStatus('w2', { status: { phase: 'Succeeded' } }, { namespace })
  await eventually(async () => (await read()) === undefined, 'the budget to be deleted')
  deepEqual((await budgets().get('of-a-user', { namespace })).spec, spec)
})

test('one whose last worker ended while no process led is deleted by the next', { timeout: 60_000 }, async () => {
  const { client } = api
  await createPod('w3')
  await protection()
  await manager.stop()
  await client.resource(podResource).delete('w3', { namespace })
  manager = await startManager()
  await eventually(async () => (await read()) === undefined, 'the budget to be deleted')
})

test('a Pod that names a deleted pool and a worker that does not exist gets none', { timeout: 60_000 }, async () => {
  const { client } = api
  await client.resource(podResource).create(podOf('forged', 'uid-of-no-worker'))
  await createPod('w4')
  await client.resource(podResource).delete('w4', { namespace })
  await eventually(async () => (await read()) === undefined, 'the budget of the other Pod to be deleted')
})

const wanted = busyWorkersBudget('p', namespace, labels.pool)
const own = { apiVersion: 'policy/v1', kind: 'PodDisruptionBudget', ...wanted } as unknown as Budget
const withMetadata = (metadata: object): Budget => ({ ...own, metadata: { ...own.metadata, ...metadata } })
const worker = { pool: 'p', poolLabel: labels.pool }
for (const [condition, input, kind] of [
  ['does not exist and has a worker is created', { worker }, 'create'],
  ['exists and has a worker remains', { found: own, worker }, 'none'],
  [
    'has a worker and an owner is replaced',
    { found: withMetadata({ ownerReferences: [owner('WorkerPool', 'p', 'u')] }), worker },
    'replace',
  ],
  ['has a worker of a deleted pool remains', { found: own, worker, hasPool: () => false }, 'none'],
  ['has no worker remains for the next one', { found: own }, 'none'],
  ['has neither a worker nor a pool is deleted', { found: own, hasPool: () => false }, 'delete'],
  ['is being deleted is not deleted again', { found: withMetadata({ deletionTimestamp: 'now' }), hasPool: () => false }, 'none'],
  ['has another name remains', { found: withMetadata({ name: 'of-a-user' }), hasPool: () => false }, 'none'],
  ['has only the label of a pool remains', { found: withMetadata({ labels: { [labels.pool]: 'p' } }), hasPool: () => false }, 'none'],
  ['does not exist and has no worker is not created', { hasPool: () => false }, 'none'],
] as const satisfies [string, Partial<BudgetInput>, string][])
  test(`a PodDisruptionBudget that ${condition}`, () => {
    const all: BudgetInput = { found: undefined, worker: undefined, hasPool: () => true, namespace, ...input }
    equal(decideBudget(all).kind, kind)
  })
