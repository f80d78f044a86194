import { deepEqual, equal, match, ok } from 'node:assert/strict'
import { after, afterEach, before, beforeEach, test } from 'node:test'
import { eventually } from '../../../../test/support/eventually.ts'
import { hasRegistered, oarlockResources, type WorkerPool, workerPoolResource, workerResource } from '../../../api/index.ts'
import { Manager, silentLog } from '../../../kubernetes/controller/index.ts'
import { startTestServer, type TestServer } from '../../../kubernetes/testing/index.ts'
import { RequestedPool } from './requested-pool.ts'

let api: TestServer
let manager: Manager
let driver: RequestedPool
let pool: WorkerPool
const reports: string[] = []
const nowMs = () => Date.now()
const workers = () => api.client.resource(workerResource)
const phaseOf = async (name: string) => (await workers().getOrUndefined(name))?.status?.phase
/** Runs garbage collection, as each pass of dispatch does, until the condition holds. */
const collected = (isDone: () => boolean | Promise<boolean>) =>
  eventually(async () => {
    driver.collectGarbage(nowMs())
    return await isDone()
  }, 'garbage collection')

before(async () => {
  api = await startTestServer({ kinds: oarlockResources })
  pool = await api.client
    .resource(workerPoolResource)
    .create({ metadata: { name: 'pool' }, spec: { mode: 'Process', slots: 2, lifecycle: 'Warm' } })
})
beforeEach(async () => {
  manager = new Manager({ client: api.client, log: silentLog })
  driver = new RequestedPool({ manager, log: silentLog, nowMs })
  reports.length = 0
  driver.listen({
    exited: (worker, exitCode, failure) =>
      reports.push(`${worker} exited ${exitCode} ${failure?.crash?.reason ?? failure?.reason}: ${failure?.message}`),
    observed: ({ name, failure, isReleased }) =>
      reports.push(`${name} ${isReleased ? 'released' : (failure?.reason ?? 'fails no longer')}: ${failure?.message ?? ''}`),
  })
  await manager.start()
})
afterEach(async () => {
  await manager.stop()
  for (const { metadata } of (await workers().listAll()).items) await workers().delete(metadata.name)
})
after(async () => await api.close())

test('requests a worker as a Worker that is Pending, and lists it until it has registered', async () => {
  await driver.start(pool, 'w')
  const worker = await workers().get('w')
  deepEqual(worker.spec, { pool: 'pool', slots: 2, lifecycle: 'Warm', start: true })
  deepEqual([worker.metadata.labels, worker.status, hasRegistered(worker)], [{ 'oarlock.dev/pool': 'pool' }, { phase: 'Pending' }, false])
  const { name, startedMs } = driver.running()[0]!
  deepEqual([name, startedMs], ['w', Date.parse(worker.metadata.creationTimestamp)])
  await workers().patchStatus('w', { status: { phase: 'Ready' } })
  await eventually(() => driver.running().length === 0, 'the worker to be registered')
})

test('a request whose response was lost is not created twice', async () => {
  await driver.start(pool, 'w')
  await driver.start(pool, 'w')
  equal((await workers().listAll()).items.length, 1)
})

test('reports a failed start with its reason and exit code once, and deletes the request', async () => {
  await driver.start(pool, 'w')
  await workers().patchStatus('w', { status: { phase: 'Starting', host: 'h1' } })
  await workers().patchStatus('w', { status: { phase: 'Failed', reason: 'CredentialRejected', message: 'rejected', exitCode: 5 } })
  await collected(async () => (await phaseOf('w')) === undefined)
  deepEqual(
    reports.filter(report => report.includes('exited')),
    ['w exited 5 CredentialRejected: rejected'],
  )
  deepEqual(driver.running(), [])
})

test('reports the crash of a worker that had registered', async () => {
  await driver.start(pool, 'w')
  await workers().patchStatus('w', { status: { phase: 'Busy', agent: 'a' } })
  await workers().patchStatus('w', { status: { phase: 'Failed', reason: 'WorkerCrashed', message: 'worker w was ended by SIGSEGV' } })
  const crash = 'w exited undefined WorkerCrashed: worker w was ended by SIGSEGV'
  await eventually(() => reports.includes(crash), 'the crash')
})

test('reports a request that another leader has made', async () => {
  await workers().create({ metadata: { name: 'of-another' }, spec: { pool: 'pool', slots: 1, lifecycle: 'OneShot', start: true } })
  await eventually(() => reports.includes('of-another fails no longer: '), 'the report')
  deepEqual(
    driver.running().map(({ name }) => name),
    ['of-another'],
  )
})

test('deletes a request that failed before this controller was the leader', async () => {
  await driver.start(pool, 'w')
  await manager.stop()
  await workers().patchStatus('w', { status: { phase: 'Failed' } })
  manager = new Manager({ client: api.client, log: silentLog })
  driver = new RequestedPool({ manager, log: silentLog, nowMs })
  await manager.start()
  await collected(async () => (await phaseOf('w')) === undefined)
})

test('withdraws a request, but does not stop a worker that has registered', async () => {
  await driver.start(pool, 'pending')
  await driver.start(pool, 'registered')
  await workers().patchStatus('registered', { status: { phase: 'Ready' } })
  // Not in the cache yet: the resourceVersion protects it.
  driver.stop('registered')
  driver.stop('pending')
  await eventually(async () => (await phaseOf('pending')) === undefined, 'the request to be withdrawn')
  await eventually(() => driver.running().length === 0, 'the cache to follow')
  driver.stop('registered')
  equal(await phaseOf('registered'), 'Ready')
})

test('reports a request that no host has claimed for ten seconds, until one claims it', async () => {
  await driver.start(pool, 'w')
  const remainingMs = driver.collectGarbage(nowMs())
  ok(remainingMs !== undefined && remainingMs > 8_000 && remainingMs <= 10_000, String(remainingMs))
  reports.length = 0
  equal(driver.collectGarbage(nowMs() + 10_000), undefined)
  match(
    reports.join(),
    /^w Unschedulable: no host has claimed worker w: is "oarlock pool" running for pool pool, and does a host have free capacity\?$/,
  )
  await workers().patchStatus('w', { status: { phase: 'Starting' } })
  await eventually(() => reports.at(-1) === 'w fails no longer: ', 'the claim to be reported')
})
