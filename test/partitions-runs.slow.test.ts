/** Oarlock on partitions as users start it: Stacks in two tenant partitions, whose Runs share two workers of a resource partition. */
import { deepEqual, equal, match, ok, rejects } from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Installation } from '../examples/partitions/installation.ts'
import { startRoles } from '../examples/partitions/roles.ts'
import {
  isEnded,
  isRejected,
  type Run,
  runResource,
  type StackSpec,
  stackResource,
  workerPoolResource,
  workerResource,
} from '../src/api/index.ts'
import { type Client, createClient, leaseResource } from '../src/kubernetes/client/index.ts'
import { findCondition } from '../src/kubernetes/object/index.ts'
import { partitionNumberOf } from '../src/kubernetes/util/index.ts'
import { eventually } from './support/eventually.ts'
import { createTenant } from './support/gateway/create-tenant.ts'
import { PartitionsFixture } from './support/partitions-fixture.ts'

const tenants = ['acme', 'umbrella'] as const
const layout = { tenantPartitions: ['t1', 't2'], resourcePartitions: ['r1'] }
const stacksPerTenant = 6

describe('Runs of two tenant partitions on shared workers', { timeout: 300_000 }, () => {
  const fixture = new PartitionsFixture()
  const { directory } = fixture
  const record = join(directory, 'record')
  let installation: Installation
  let client: Client

  before(async () => {
    ;({ installation, client } = await fixture.start({ ...layout }))
    const { kubeconfig } = installation
    await client.resource(workerPoolResource).create({ metadata: { name: 'shared' }, spec: { mode: 'External', lifecycle: 'Warm' } })
    for (const [index, name] of tenants.entries()) await createTenant(client, name, `t${index + 1}`)
    await startRoles(installation, client, { ...layout, workers: 0, hollow: 0 })
    const token = (await installation.run('token', 'create', '--pool', 'shared', '--kubeconfig', kubeconfig)).trim()
    const url = installation.role('join-service').printed('join')
    for (const name of ['w1', 'w2']) {
      const args = ['worker', '--server', url, '--token', token, '--name', name]
      Object.assign(process.env, { OARLOCK_RUNS_DIR: join(directory, name, 'runs'), OARLOCK_CACHE_DIR: join(directory, name, 'cache') })
      installation.add(name, args)
    }
    await eventually(
      async () => (await client.resource(workerResource).listAll({})).items.filter(isReady).length === 2,
      'two workers',
      60_000,
    )
  })
  after(() => fixture.stop())
  const isReady = ({ status }: { status?: { phase?: string } | undefined }) => status?.phase === 'Ready' || status?.phase === 'Busy'
  const runs = async () => (await client.resource(runResource).listAll({})).items as Run[]

  test('workers and their Leases are in the resource partition, with their bucket', async () => {
    const r1 = await createClient({ kubeconfig: installation.partitionKubeconfig('r1') })
    try {
      const workers = (await r1.resource(workerResource).listAll({})).items
      equal(workers.length, 2)
      for (const { metadata } of workers) {
        ok(metadata.labels?.['oarlock.dev/worker-bucket'])
        equal(metadata.labels['oarlock.dev/partition'], 'r1')
        const lease = await r1.resource(leaseResource).get(metadata.name, { namespace: 'oarlock-system' })
        equal(lease.metadata.labels?.['oarlock.dev/worker-bucket'], metadata.labels['oarlock.dev/worker-bucket'])
      }
    } finally {
      await r1.close()
    }
  })

  test('all Stacks become Ready, no Run is executed twice, and no worker executes two at a time', async () => {
    const script = `echo "$OARLOCK_RUN start $$" >> ${record}; sleep 0.3; echo "$OARLOCK_RUN end $$" >> ${record}`
    const spec: StackSpec = {
      ...{ engine: 'command', pool: 'shared', source: { inline: { files: { a: '' } } } },
      command: { apply: ['sh', '-c', script] },
    }
    const stacks = client.resource(stackResource)
    for (let index = 0; index < stacksPerTenant; index++)
      for (const namespace of tenants) await stacks.create({ metadata: { namespace, name: `s${index}` }, spec })
    const isAllReady = async () => {
      const { items } = await stacks.listAll({})
      return (
        items.length === tenants.length * stacksPerTenant &&
        items.every(({ status }) => findCondition(status?.conditions, 'Ready')?.status === 'True')
      )
    }
    await eventually(isAllReady, 'all Stacks', 120_000)
    const all = await runs()
    const [succeeded, rejected] = [all.filter(({ status }) => status?.phase === 'Succeeded'), all.filter(isRejected)]
    deepEqual([succeeded.length, succeeded.length + rejected.length], [tenants.length * stacksPerTenant, all.length])
    const numbers = new Set(succeeded.map(({ metadata }) => partitionNumberOf(metadata.resourceVersion)))
    deepEqual([...numbers].sort(), [1, 2], 'the Runs are in both partitions')
    const lines = readFileSync(record, 'utf8').trim().split('\n')
    equal(lines.filter(line => line.includes(' start ')).length, tenants.length * stacksPerTenant, 'each Run was executed once')
    // Two workers of one slot.
    let [running, most] = [0, 0]
    for (const line of lines) {
      running += line.includes(' start ') ? 1 : -1
      most = Math.max(most, running)
    }
    ok(most <= 2, `${most} Runs at a time`)
    for (const run of rejected) equal(run.status?.startedAt, undefined)
  })

  test('logs, plans and states are read from the stores of the partition that has the Stack', async () => {
    const run = (...args: string[]) => installation.run(...args, '--kubeconfig', 'gateway.kubeconfig')
    for (const namespace of tenants) {
      await client.resource(stackResource).create({
        metadata: { namespace, name: 'shown' },
        spec: {
          ...{ engine: 'command', pool: 'shared', approval: 'Manual', source: { inline: { files: { a: '' } } } },
          command: { plan: ['sh', '-c', `echo would change ${namespace}; exit 2`], apply: ['sh', '-c', `echo applied ${namespace}`] },
        },
      })
      await run('run', 'shown', '-n', namespace, '--wait').catch(error => match(String(error.stderr), /awaits approval/))
      const { lastRun } = (await client.resource(stackResource).get('shown', { namespace })).status ?? {}
      match(await run('plan', '--run', lastRun?.name ?? '', '-n', namespace), new RegExp(`would change ${namespace}`))
      await run('approve', 'shown', '-n', namespace, '--yes')
      await eventually(
        async () =>
          findCondition((await client.resource(stackResource).get('shown', { namespace })).status?.conditions, 'Ready')?.status ===
            'True' || undefined,
        'the approved Stack',
        60_000,
      )
      match(await run('logs', 'stack/shown', '-n', namespace), new RegExp(`applied ${namespace}`))
    }
  })

  test('with home killed for longer than a review of a token lasts, new Stacks become Ready, and no worker is lost', async () => {
    const home = installation.role('home')
    const names = async () => (await client.resource(workerResource).listAll({})).items.filter(isReady).map(({ metadata }) => metadata.name)
    const before = await names()
    equal(before.length, 2)
    await home.end('SIGKILL')
    await sleep(15_000)
    const spec: StackSpec = {
      ...{ engine: 'command', pool: 'shared', source: { inline: { files: { a: '' } } } },
      command: { apply: ['true'] },
    }
    for (const namespace of tenants) await client.resource(stackResource).create({ metadata: { namespace, name: 'meanwhile' }, spec })
    for (const namespace of tenants) {
      const isReadyStack = async () => {
        const stack = await client.resource(stackResource).get('meanwhile', { namespace })
        return findCondition(stack.status?.conditions, 'Ready')?.status === 'True'
      }
      await eventually(isReadyStack, `the Stack of ${namespace}`, 60_000)
    }
    const { items } = await client.resource(runResource).listAll({ namespace: 'acme' })
    const executed = items.find(({ spec }) => spec.stackRef.name === 'meanwhile')?.spec.workerName ?? ''
    ok(before.includes(executed), `worker ${executed}`)
    // What home is a part of is not answered in part.
    await rejects(client.resource(stackResource).listAll({}), /partition "home" does not answer/)
    equal(home.isRunning, false)
    home.restart()
    await home.until(/^ready: /m)
    deepEqual(await names(), before, 'no worker was lost')
    const stacks = async () => await client.resource(stackResource).listAll({})
    const count = async () => (await stacks().catch(() => undefined))?.items.length
    await eventually(async () => (await count()) === tenants.length * (stacksPerTenant + 2), 'the list of all Stacks', 30_000)
  })

  test('a killed worker is lost in the partition of its Run, whose next Run succeeds on the other worker', async () => {
    const started = join(directory, 'started')
    const script = `if [ -e ${started} ]; then exit 0; fi; touch ${started}; sleep 120`
    const spec: StackSpec = {
      ...{ engine: 'command', pool: 'shared', source: { inline: { files: { a: '' } } } },
      command: { apply: ['sh', '-c', script] },
    }
    await client.resource(stackResource).create({ metadata: { namespace: 'acme', name: 'lost' }, spec })
    await eventually(() => existsSync(started), 'the Run', 60_000)
    const active = (await runs()).find(run => !isEnded(run) && run.spec.stackRef.name === 'lost')
    const name = active?.spec.workerName ?? ''
    await installation.role(name.slice(0, 2)).end('SIGKILL')
    const isReadyAgain = async () => {
      const stack = await client.resource(stackResource).get('lost', { namespace: 'acme' })
      return findCondition(stack.status?.conditions, 'Ready')?.status === 'True'
    }
    await eventually(isReadyAgain, 'the next Run', 60_000)
    const lost = await client.resource(runResource).get(active?.metadata.name ?? '', { namespace: 'acme' })
    deepEqual([lost.status?.phase, lost.status?.reason], ['Lost', 'WorkerLost'])
    const isRemoved = async () => (await client.resource(workerResource).getOrUndefined(name)) === undefined
    await eventually(isRemoved, 'the removal of its Worker', 30_000)
  })
})
