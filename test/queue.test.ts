import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { Agent, fetch } from 'undici'
import {
  type Run,
  runResource,
  type StackSpec,
  stackResource,
  tenantResource,
  workerPoolResource,
  workerResource,
} from '../src/api/index.ts'
import { type AllInOne, startAllInOne } from '../src/app/index.ts'
import type { QueueReport } from '../src/controllers/dispatch/index.ts'
import { type Client, leaseResource, namespaceResource } from '../src/kubernetes/client/index.ts'
import { isConditionTrue } from '../src/kubernetes/object/index.ts'
import { eventually } from './support/eventually.ts'

// The real all-in-one. Workers of an External pool are not started, so its Runs remain queued.
const dataDir = mkdtempSync(join(tmpdir(), 'oarlock-queue-'))
let allInOne: AllInOne
let client: Client

before(async () => {
  const port = { host: '127.0.0.1', port: 0 }
  const launcher = [process.execPath, join(import.meta.dirname, '..', 'bin', 'oarlock.js')]
  allInOne = await startAllInOne({ dataDir, listen: port, healthAddress: port, launcher, version: 'test' })
  client = allInOne.client
  await client.resource(workerPoolResource).create({ metadata: { name: 'joined' }, spec: { mode: 'External' } })
  for (const name of ['a', 'b', 'c']) await client.resource(namespaceResource).create({ metadata: { name } })
})

after(async () => {
  await allInOne?.stop({ graceMs: 1_000 })
  rmSync(dataDir, { recursive: true, force: true })
})

const source = { inline: { files: { a: '1' } } }
const make = (namespace: string, name: string, spec: Partial<StackSpec> = {}) =>
  client.resource(stackResource).create({
    metadata: { name, namespace },
    spec: { engine: 'command', command: { apply: ['true'] }, source, pool: 'joined', ...spec },
  })
const runsOf = async (namespace: string) => (await client.resource(runResource).list({ namespace })).items
const getQueue = async (query = '') => {
  const token = readFileSync(join(dataDir, 'status-token'), 'utf8').trim()
  const response = await fetch(`${allInOne.httpUrl}/queue${query}`, { headers: { authorization: `Bearer ${token}` } })
  return { status: response.status, body: (await response.json()) as QueueReport & { message?: string } }
}

describe('queued Runs', () => {
  test('have a reason and a position in the status and at /queue', async () => {
    await make('a', 'first')
    await eventually(
      () => runsOf('a'),
      runs => runs.length === 1,
    )
    await make('a', 'second', { priority: 1 })
    const runs = await eventually(
      () => runsOf('a'),
      all => all.length === 2 && all.every(({ status }) => status?.queuePosition !== undefined),
    )
    const of = (stack: string): Run => runs.find(run => run.spec.stackRef.name === stack)!
    assert.equal(of('second').status?.queuePosition, 1, 'the higher priority is first')
    assert.equal(of('first').status?.queuePosition, 2)
    assert.equal(of('first').status?.reason, 'NoWorkerJoined')
    assert.match(
      of('first').status?.message ?? '',
      /no worker of pool joined has joined; create a token for one with: oarlock token create --pool joined/,
    )
    const { body } = await getQueue('?pool=joined')
    assert.deepEqual(
      body.runs.map(({ position, stack, reason, priorityClass }) => ({ position, stack, reason, priorityClass })),
      [
        { position: 1, stack: 'second', reason: 'NoWorkerJoined', priorityClass: 'Change' },
        { position: 2, stack: 'first', reason: 'NoWorkerJoined', priorityClass: 'Change' },
      ],
    )
    assert.deepEqual(body.pools, [{ name: 'joined', queued: 2, running: 0, maxRunning: null }])
  })

  test('have a reason that names the label that no worker has', async () => {
    await make('c', 'gpu', { placement: { workerLabels: { gpu: 'a100' } } })
    const name = 'plain'
    // A Worker without a process, which is enough for placement.
    await client
      .resource(leaseResource)
      .create({ metadata: { name, namespace: 'oarlock-system', labels: { 'oarlock.dev/pool': 'joined' } }, spec: { holderIdentity: name } })
    await client.resource(workerResource).create({ metadata: { name }, spec: { pool: 'joined', slots: 1, lifecycle: 'Warm' } })
    await client.resource(workerResource).patchStatus(name, { status: { phase: 'Ready' } })
    const [run] = await eventually(
      () => runsOf('c'),
      ([first]) => first?.status?.reason === 'NoMatchingWorker',
    )
    assert.equal(run?.status?.message, 'worker plain of pool joined lacks label gpu=a100')
    const placed = await eventually(
      () => runsOf('a'),
      runs => runs.some(({ spec, status }) => spec.workerName === name && status?.queuePosition === undefined),
    )
    assert.equal(placed.find(({ spec }) => spec.workerName)?.spec.stackRef.name, 'second', 'a blocked Run does not delay other Runs')
    assert.equal(placed.find(({ spec }) => spec.workerName)?.status?.phase, 'Assigned')
  })
})

describe('isolation', () => {
  test('a Run is queued with the missing isolation level as its reason', async () => {
    await make('a', 'in-a-pod', { pool: 'default', isolation: { level: 'Pod' } })
    const run = await eventually(
      async () => (await runsOf('a')).find(({ spec }) => spec.stackRef.name === 'in-a-pod'),
      found => found?.status?.reason === 'NoMatchingWorker',
    )
    assert.equal(run?.status?.phase, 'Queued')
    assert.match(
      run?.status?.message ?? '',
      /^worker default-\w+ of pool default lacks isolation Pod \(it offers Process( and Sandbox)?\)$/,
    )
    const [, ...others] = (await client.resource(workerResource).list()).items.filter(({ spec }) => spec.pool === 'default')
    assert.equal(others.length, 0, 'no further worker without the level was started')
  })

  test('a Run with level Sandbox is executed in a sandbox', async t => {
    const workers = (await client.resource(workerResource).list()).items.filter(({ spec }) => spec.pool === 'default')
    if (!workers.some(({ status }) => status?.isolation?.includes('Sandbox')))
      return t.skip('workers on this machine do not offer sandboxes')
    await make('a', 'in-a-sandbox', { pool: 'default', isolation: { level: 'Sandbox' } })
    await eventually(
      async () => (await runsOf('a')).find(({ spec }) => spec.stackRef.name === 'in-a-sandbox'),
      found => found?.status?.phase === 'Succeeded' && found.status.isolation?.level === 'Sandbox',
    )
  })
})

describe('a Tenant', () => {
  test('limits the Runs of its namespaces, and the limit is the reason of the others', async () => {
    await client.resource(tenantResource).create({
      metadata: { name: 'shop' },
      spec: { namespaces: ['b'], weight: 3, limits: { maxRunning: 0 } },
    })
    await make('b', 'blocked')
    const [run] = await eventually(
      () => runsOf('b'),
      ([first]) => first?.status?.reason === 'TenantLimit',
    )
    assert.equal(run?.status?.message, 'tenant shop has 0 of at most 0 active Runs (spec.limits.maxRunning of Tenant shop)')
    assert.equal(run?.status?.queuePosition, undefined)
    const tenant = await eventually(
      () => client.resource(tenantResource).get('shop'),
      ({ status }) => status?.queued === 1,
    )
    assert.deepEqual(
      { ...tenant.status, conditions: undefined },
      { conditions: undefined, observedGeneration: 1, namespaces: 1, queued: 1, running: 0 },
    )
    assert.ok(isConditionTrue(tenant.status?.conditions, 'Ready'))
    const { body } = await getQueue('?namespace=b')
    assert.deepEqual(
      body.tenants.map(({ name, weight, maxRunning }) => ({ name, weight, maxRunning })),
      [{ name: 'shop', weight: 3, maxRunning: 0 }],
    )
    assert.deepEqual(
      body.runs.map(({ stack, position }) => ({ stack, position })),
      [{ stack: 'blocked', position: null }],
    )
  })

  test('reports a conflict if an older Tenant owns one of its namespaces', async () => {
    await client.resource(tenantResource).create({ metadata: { name: 'late' }, spec: { namespaces: ['b'] } })
    const late = await eventually(
      () => client.resource(tenantResource).get('late'),
      ({ status }) => status?.conditions !== undefined,
    )
    const ready = late.status?.conditions?.find(({ type }) => type === 'Ready')
    assert.equal(ready?.reason, 'NamespaceConflict')
    assert.match(ready?.message ?? '', /b \(Tenant shop\)/)
  })
})

test('a queued Run is superseded when its Stack changes, and the new Run keeps its age', async () => {
  const [before] = await runsOf('b')
  await client.resource(stackResource).patch('blocked', { spec: { timeout: '2h' } }, { type: 'merge', namespace: 'b' })
  const runs = await eventually(
    () => runsOf('b'),
    all => all.length === 2,
  )
  const old = runs.find(run => run.metadata.name === before?.metadata.name)
  const next = runs.find(run => run !== old)
  assert.deepEqual([old?.status?.phase, old?.status?.reason, old?.status?.supersededBy], ['Canceled', 'Superseded', next?.metadata.name])
  assert.equal(next?.spec.queuedSince, before?.metadata.creationTimestamp)
})

describe('GET /queue', () => {
  test('rejects invalid parameters with 400', async () => {
    const { status, body } = await getQueue('?limit=many')
    assert.equal(status, 400)
    assert.equal(body.message, 'limit must be an integer from 0 to 5000, got "many"')
    assert.equal((await getQueue('?x=1')).status, 400)
  })

  test('at the API server requires permission to list Runs', async () => {
    const dispatcher = new Agent({ connect: { ca: allInOne.server.caCertificate } })
    const get = async (bearer: string | undefined, query = '') => {
      const headers = bearer === undefined ? {} : { authorization: `Bearer ${bearer}` }
      return (await fetch(`${allInOne.apiUrl}/queue${query}`, { headers, dispatcher })).status
    }
    const unprivileged = allInOne.server.issueToken({ name: 'eve', groups: [], ttlMs: 60_000 })
    assert.equal(await get(undefined), 401)
    assert.equal(await get(unprivileged), 403)
    assert.equal(await get(allInOne.server.adminToken), 200)
    const rbac = 'rbac.authorization.k8s.io'
    const rules = [{ apiGroups: ['oarlock.dev'], resources: ['runs'], verbs: ['list'] }]
    const post = (path: string, body: object) =>
      client.request({ method: 'POST', path, body: JSON.stringify(body), headers: { 'content-type': 'application/json' } })
    const base = `/apis/${rbac}/v1/namespaces/b`
    await post(`${base}/roles`, { apiVersion: `${rbac}/v1`, kind: 'Role', metadata: { name: 'reader' }, rules })
    await post(`${base}/rolebindings`, {
      apiVersion: `${rbac}/v1`,
      kind: 'RoleBinding',
      metadata: { name: 'eve' },
      roleRef: { apiGroup: rbac, kind: 'Role', name: 'reader' },
      subjects: [{ apiGroup: rbac, kind: 'User', name: 'eve' }],
    })
    assert.equal(await get(unprivileged, '?namespace=b'), 200)
    assert.equal(await get(unprivileged, '?namespace=a'), 403)
    assert.equal(await get(unprivileged), 403)
    await dispatcher.close()
  })
})
