/** A WorkerPool of mode Process over partitions: workers are started for the queued Runs of two tenant partitions, and drained afterwards. */
import { deepEqual, equal, match, ok } from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import type { Installation } from '../examples/partitions/installation.ts'
import { startRoles } from '../examples/partitions/roles.ts'
import {
  isRejected,
  type Run,
  runResource,
  type StackSpec,
  stackResource,
  type WorkerPool,
  workerPoolResource,
  workerResource,
} from '../src/api/index.ts'
import { type Client, createClient } from '../src/kubernetes/client/index.ts'
import { findCondition } from '../src/kubernetes/object/index.ts'
import { eventually } from './support/eventually.ts'
import { createTenant } from './support/gateway/create-tenant.ts'
import { PartitionsFixture } from './support/partitions-fixture.ts'

const tenants = ['acme', 'umbrella'] as const
const layout = { tenantPartitions: ['t1', 't2'], resourcePartitions: ['r1'] }
const stacksPerTenant = 6
const max = 3

describe('a pool of mode Process for two tenant partitions', { timeout: 600_000 }, () => {
  const fixture = new PartitionsFixture()
  const { directory } = fixture
  const record = join(directory, 'record')
  let installation: Installation
  let client: Client

  before(async () => {
    ;({ installation, client } = await fixture.start({ ...layout }))
    const spec: WorkerPool['spec'] = { mode: 'Process', lifecycle: 'Warm', min: 0, max, idleTimeout: '3s' }
    await client.resource(workerPoolResource).create({ metadata: { name: 'elastic', labels: { 'oarlock.dev/partition': 'r1' } }, spec })
    const oneShot: WorkerPool['spec'] = { mode: 'Process', lifecycle: 'OneShot', min: 0, max }
    await client
      .resource(workerPoolResource)
      .create({ metadata: { name: 'one-shot', labels: { 'oarlock.dev/partition': 'r1' } }, spec: oneShot })
    for (const [index, name] of tenants.entries()) await createTenant(client, name, `t${index + 1}`)
    await startRoles(installation, client, { ...layout, workers: 0, hollow: 0 })
    await startPool().until(/^ready: /m)
  })
  after(() => fixture.stop())
  const startPool = () => {
    const served = ['--pool', 'elastic', '--pool', 'one-shot']
    return installation.add('pool', ['pool', '--kubeconfig', installation.kubeconfig, ...served, '--max-workers', '8', '--data', 'pool'])
  }
  const pool = async () => await client.resource(workerPoolResource).get('elastic')
  const workers = async () => (await client.resource(workerResource).listAll({})).items
  const spec = (script: string, pool = 'elastic'): StackSpec => ({
    ...{ engine: 'command', pool, source: { inline: { files: { a: '' } } } },
    command: { apply: ['sh', '-c', script] },
  })

  test('starts workers for the Runs of both, up to its maximum, and none is started for a Run that has one', async () => {
    // The first Runs wait until the others were counted: how long that takes depends on the load of the machine.
    const counted = join(directory, 'counted')
    const wait = `while [ ! -e ${counted} ]; do sleep 0.1; done; sleep 1`
    const script = `echo "$OARLOCK_RUN start" >> ${record}; ${wait}; echo "$OARLOCK_RUN end" >> ${record}`
    const stacks = client.resource(stackResource)
    for (let index = 0; index < stacksPerTenant; index++)
      for (const namespace of tenants) await stacks.create({ metadata: { namespace, name: `s${index}` }, spec: spec(script) })
    const statuses: WorkerPool['status'][] = []
    const partitions = new Set<string>()
    const names = new Set<string>()
    const observe = async () => {
      const { status } = await pool()
      statuses.push(status)
      for (const name of Object.keys(status?.demand ?? {})) partitions.add(name)
      for (const { metadata } of await workers()) names.add(metadata.name)
    }
    const isCounted = async () => {
      await observe()
      return (statuses.at(-1)?.queued ?? 0) > stacksPerTenant && partitions.size === tenants.length
    }
    await eventually(isCounted, 'the Runs of both partitions to be counted', 60_000)
    writeFileSync(counted, '')
    const isAllReady = async () => {
      await observe()
      const { items } = await stacks.listAll({})
      const ready = items.filter(item => findCondition(item.status?.conditions, 'Ready')?.status === 'True')
      return ready.length === tenants.length * stacksPerTenant
    }
    await eventually(isAllReady, 'all Stacks', 120_000)
    deepEqual([...partitions].sort(), ['t1', 't2'])
    ok(
      statuses.some(status => (status?.queued ?? 0) > stacksPerTenant),
      'the Runs of both partitions were counted',
    )
    ok(statuses.some(status => (status?.busy ?? 0) > 0))
    ok(statuses.every(status => (status?.desired ?? 0) <= max && (status?.workers ?? 0) <= max))
    equal(names.size, max, [...names].join(', '))
    const runs = (await client.resource(runResource).listAll({})).items as Run[]
    equal(runs.filter(({ status }) => status?.phase === 'Succeeded').length, tenants.length * stacksPerTenant)
    const others = runs.filter(run => run.status?.phase !== 'Succeeded' && !isRejected(run))
    deepEqual(others, [], 'all other Runs found their worker busy')
    const lines = readFileSync(record, 'utf8').trim().split('\n')
    equal(lines.filter(line => line.endsWith(' start')).length, tenants.length * stacksPerTenant, 'each Run was executed once')
    const r1 = await createClient({ kubeconfig: installation.partitionKubeconfig('r1') })
    try {
      ok((await r1.resource(workerResource).listAll({})).items.every(({ metadata }) => names.has(metadata.name)))
    } finally {
      await r1.close()
    }
  })

  test('drains them when they have been idle, and its status has no demand', async () => {
    await eventually(async () => (await workers()).length === 0, 'the end of all workers', 60_000)
    const isIdle = async () => {
      const { status } = await pool()
      return status?.workers === 0 && status.busy === 0 && status.queued === 0 && Object.keys(status.demand ?? {}).length === 0
    }
    await eventually(isIdle, 'the status of the pool', 30_000)
  })

  test('starts one worker for one Run, and keeps it while it is busy and the controllers of its partition are dead', async () => {
    const before = (await pool()).status?.started ?? 0
    const resume = join(directory, 'resume')
    const script = `while [ ! -e ${resume} ]; do sleep 0.2; done`
    await client.resource(stackResource).create({ metadata: { namespace: 'acme', name: 'long' }, spec: spec(script) })
    const isBusy = async () => (await workers()).some(({ status }) => status?.phase === 'Busy')
    await eventually(isBusy, 'a busy worker', 60_000)
    await eventually(async () => (await pool()).status?.demand?.t1 === undefined, 'the end of its demand')
    await installation.role('controller-t1').end('SIGKILL')
    // Longer than the idle timeout, with a new leader of the dispatcher that sizes the pool.
    await installation.role('controller-home').end('SIGKILL')
    installation.role('controller-home').restart()
    await installation.role('controller-home').until(/^ready: this process leads/m)
    await client.resource(stackResource).create({ metadata: { namespace: 'umbrella', name: 'short' }, spec: spec('true') })
    const isReady = (namespace: string, name: string) => async () => {
      const stack = await client.resource(stackResource).get(name, { namespace })
      return findCondition(stack.status?.conditions, 'Ready')?.status === 'True'
    }
    await eventually(isReady('umbrella', 'short'), 'the Stack of the other partition', 60_000)
    await eventually(async () => (await workers()).length === 1, 'the end of the idle worker', 60_000)
    ok(await isBusy())
    equal(((await pool()).status?.started ?? 0) - before, 2, 'a worker for each of the two Runs')
    installation.role('controller-t1').restart()
    writeFileSync(resume, '')
    await eventually(isReady('acme', 'long'), 'the Stack', 60_000)
  })

  test('a pool whose workers work leaves the backoff after failed starts, and few of its one-shot workers reject a Run', async () => {
    await installation.role('join-service').end()
    const stacks = client.resource(stackResource)
    for (let index = 0; index < stacksPerTenant; index++)
      for (const namespace of tenants)
        await stacks.create({ metadata: { namespace, name: `once${index}` }, spec: spec('sleep 0.5', 'one-shot') })
    const readiness = async () => findCondition((await client.resource(workerPoolResource).get('one-shot')).status?.conditions, 'Ready')
    const failed = await eventually(async () => {
      const ready = await readiness()
      return ready?.status === 'False' ? ready : undefined
    }, 'a failed start')
    equal(failed.reason, 'CreateFailed')
    match(
      failed.message ?? '',
      /no join service is running .*; start "oarlock join-service --kubeconfig FILE --data DIR" with a kubeconfig of /,
    )
    installation.role('join-service').restart()
    let mostWorkers = 0
    const isAllReady = async () => {
      mostWorkers = Math.max(mostWorkers, (await workers()).length)
      const items = (await stacks.listAll({})).items.filter(({ metadata }) => metadata.name.startsWith('once'))
      const ready = items.filter(item => findCondition(item.status?.conditions, 'Ready')?.status === 'True')
      return ready.length === tenants.length * stacksPerTenant
    }
    await eventually(isAllReady, 'all Stacks', 180_000)
    equal((await readiness())?.status, 'True')
    equal(mostWorkers, max, 'workers were started together')
    const runs = (await client.resource(runResource).listAll({})).items.filter(run => run.spec.pool === 'one-shot') as Run[]
    const rejected = runs.filter(isRejected).length
    ok(rejected <= 3, `${rejected} of ${runs.length} Runs were rejected`)
  })

  test('while home is down, the message of a Run that waits for a new worker names it, and the Run is executed afterwards', async () => {
    await eventually(async () => (await workers()).length === 0, 'the end of all workers', 60_000)
    const home = installation.role('home')
    await home.end('SIGKILL')
    await client.resource(stackResource).create({ metadata: { namespace: 'acme', name: 'later' }, spec: spec('true') })
    let message = ''
    const isNamed = async () => {
      const { items } = await client.resource(runResource).listAll({ namespace: 'acme' })
      const run = items.find(({ spec }) => spec.stackRef?.name === 'later')
      message = run?.status?.message ?? message
      return message.includes('does not answer')
    }
    await eventually(isNamed, 'the message of the Run', 60_000)
    const expected =
      'pool elastic has no worker for this partition, and home, whose controllers start one, does not answer; check the API server of home'
    equal(message, expected)
    home.restart()
    await home.until(/^ready: /m)
    const controller = installation.role('controller-home')
    await eventually(() => !controller.isRunning || /lead/.test(controller.output()), 'the end of the controllers of home', 60_000)
    if (!controller.isRunning) controller.restart()
    const isReady = async () => {
      const stack = await client.resource(stackResource).get('later', { namespace: 'acme' })
      return findCondition(stack.status?.conditions, 'Ready')?.status === 'True'
    }
    await eventually(isReady, 'the Stack', 120_000)
  })
})
