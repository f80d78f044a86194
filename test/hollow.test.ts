import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { labels, runResource, stackResource, systemNamespace, workerPoolResource, workerResource } from '../src/api/index.ts'
import { type AllInOne, startAllInOne } from '../src/app/index.ts'
import type { HollowReport } from '../src/cli/commands/hollow.ts'
import { type HollowStackLoad, hollowWorkers } from '../src/execution/worker/index.ts'
import { type Client, leaseResource } from '../src/kubernetes/client/index.ts'
import { eventually } from './support/eventually.ts'
import { runOarlock } from './support/run-program.ts'

// The real all-in-one: API server, Stack controller, dispatch. Only the engines are simulated.
const dataDir = mkdtempSync(join(tmpdir(), 'oarlock-hollow-'))
const launcher = [process.execPath, join(import.meta.dirname, '..', 'bin', 'oarlock.js')]
let app: AllInOne
let client: Client

before(async () => {
  const port = { host: '127.0.0.1', port: 0 }
  app = await startAllInOne({ dataDir, listen: port, healthAddress: port, launcher, version: 'test' })
  client = app.client
})

after(async () => {
  await app?.stop({ graceMs: 1_000 })
  rmSync(dataDir, { recursive: true, force: true })
})

async function countObjects(pool: string) {
  const labelSelector = `${labels.pool}=${pool}`
  const [workers, leases, stacks, runs] = await Promise.all([
    client.resource(workerResource).listAll({ labelSelector }),
    client.resource(leaseResource).listAll({ namespace: systemNamespace, labelSelector }),
    client.resource(stackResource).listAll({ labelSelector: 'oarlock.dev/hollow' }),
    client.resource(runResource).listAll({}),
  ])
  return { workers: workers.items.length, leases: leases.items.length, stacks: stacks.items.length, runs: runs.items.length }
}

const nothing = { workers: 0, leases: 0, stacks: 0, runs: 0 }

describe('hollow workers', () => {
  test('20 hollow workers execute the Runs of 40 Stacks and leave no objects behind', async () => {
    const { HollowFleet, HollowStackLoad, parseHollowProfile } = await hollowWorkers()
    const pool = 'twenty'
    await client.resource(workerPoolResource).create({ metadata: { name: pool }, spec: { mode: 'External', max: 20 } })
    const errors: unknown[] = []
    const onError = (error: unknown) => errors.push(error)
    const load: HollowStackLoad = new HollowStackLoad({
      client,
      namespace: 'default',
      prefix: 'h',
      pool,
      runsPerSecond: 200,
      stacks: 40,
      onError,
    })
    const fleet = new HollowFleet({
      ...{ client, prefix: 'h', workers: 20, pool, renewMs: 500, onError },
      profile: parseHollowProfile({ phases: { preparing: '5ms', planning: { p0: '1ms', p99: '20ms' }, applying: '10ms' } }),
      onRunStarted: run => load.onRunAssigned(run),
      onRunEnded: (run, phase) => load.onRunEnded(run, phase),
    })
    await fleet.start()
    assert.deepEqual(await countObjects(pool), { ...nothing, workers: 20, leases: 20 })
    load.start()
    await eventually(() => load.changes >= 40, '40 changes', 30_000)
    await load.stop(30_000)
    assert.equal(load.activeStacks, 0)
    const { started, succeeded, registered, lost, revoked } = fleet.counts
    assert.deepEqual({ started, registered, lost, revoked }, { started: succeeded, registered: 20, lost: 0, revoked: 0 })
    assert.ok(succeeded >= 40, `${succeeded} Runs`)
    assert.equal(load.endedLatencies.count, load.changes)
    assert.ok(load.assignedLatencies.percentile(50) <= load.endedLatencies.percentile(50))
    await eventually(() => fleet.counts.renewals >= 20, 'a renewal of each')
    let patchesOfNothing = 0
    const stopCounting = client.observeRequests(({ method, code }) => {
      if (method === 'PATCH' && code === '404') patchesOfNothing++
    })
    assert.equal(await load.remove(30_000), 0)
    stopCounting()
    assert.equal(patchesOfNothing, 0, 'a finalizer was removed again before the watch delivered the deletion')
    await fleet.stop()
    assert.deepEqual(await countObjects(pool), nothing)
    assert.deepEqual(errors, [])
  })

  test('a worker whose Lease was deleted counts as lost and reports nothing more', async () => {
    const { HollowFleet, emptyProfile } = await hollowWorkers()
    const fleet = new HollowFleet({ client, prefix: 'gone', workers: 2, pool: 'gone', renewMs: 200, profile: emptyProfile })
    await fleet.start()
    await client.resource(leaseResource).delete('gone-1', { namespace: systemNamespace })
    await eventually(() => fleet.counts.lost === 1, 'the worker to notice')
    await fleet.stop()
    await client.resource(workerResource).delete('gone-1')
    assert.deepEqual(await countObjects('gone'), nothing)
  })

  test('the command prints a JSON report and deletes its pool', async () => {
    const profile = join(dataDir, 'profile.json')
    writeFileSync(profile, JSON.stringify({ phases: { planning: '2ms' }, changeShare: 0.5 }))
    const args = ['--workers', '5', '--runs-per-second', '20', '--stacks', '5', '--duration', '1s', '--renew', '300ms', '-o', 'json']
    const { code, stdout, stderr } = await runOarlock(['hollow', ...['--kubeconfig', app.kubeconfigPath, '--profile', profile], ...args])
    assert.equal(code, 0, stderr)
    const report = JSON.parse(stdout) as HollowReport
    assert.deepEqual(report.workers, { requested: 5, registered: 5, lost: 0 })
    assert.ok(report.renewals.succeeded >= 5)
    assert.ok(report.runs && report.runs.succeeded >= 5 && report.runs.failed === 0)
    assert.deepEqual(await countObjects('hollow'), nothing)
    assert.equal(await client.resource(workerPoolResource).getOrUndefined('hollow'), undefined)
  })

  test('rejects an invalid profile before it creates anything', async () => {
    const profile = join(dataDir, 'wrong.json')
    writeFileSync(profile, JSON.stringify({ failureShare: 7 }))
    const { code, stderr } = await runOarlock([...['hollow', '--workers', '1', '--kubeconfig', app.kubeconfigPath, '--profile', profile]])
    assert.equal(code, 2)
    assert.match(stderr, /failureShare 7 must be a number from 0 to 1/)
  })
})
