/** `oarlock pool`: worker processes of hosts that the controllers reach only through the API server. */
import { deepEqual, equal, match, ok } from 'node:assert/strict'
import { appendFileSync, existsSync, mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, afterEach, before, describe, test } from 'node:test'
import { labels, type StackSpec, systemNamespace, workerPoolResource, workerResource } from '../src/api/index.ts'
import { leaseResource } from '../src/kubernetes/client/index.ts'
import { findCondition } from '../src/kubernetes/object/index.ts'
import { eventually } from './support/eventually.ts'
import { makeDataDir, removeDirectory } from './support/oarlock-process.ts'
import {
  type AgentProcess,
  type RequestedPoolFixture,
  startAgentProcess,
  startRequestedPoolFixture,
} from './support/requested-pool-fixture.ts'
import { runOarlock } from './support/run-program.ts'
import { StackFixture } from './support/stacks.ts'

describe('oarlock pool', () => {
  const directory = makeDataDir()
  let fixture: RequestedPoolFixture
  let stacks: StackFixture
  let agents: AgentProcess[] = []
  let hosts = 0

  before(async () => {
    fixture = await startRequestedPoolFixture(join(directory, 'server'))
    stacks = new StackFixture(fixture.client)
  })
  afterEach(async () => {
    for (const agent of agents) await agent.end('SIGTERM')
    agents = []
  })
  after(async () => {
    await fixture?.close()
    removeDirectory(directory)
  })

  const newHost = () => join(directory, `host${++hosts}`)
  const startAgent = async (dataDir: string, args: readonly string[] = []) => {
    const agent = await startAgentProcess(fixture.kubeconfig, dataDir, args)
    agents.push(agent)
    return agent
  }
  const createPool = async (
    name: string,
    spec: { max?: number; min?: number; idleTimeout?: string; lifecycle?: 'OneShot' | 'Warm' } = {},
  ) => await fixture.client.resource(workerPoolResource).create({ metadata: { name }, spec: { mode: 'Process', max: 4, ...spec } })
  const workersOf = async (pool: string) =>
    (await fixture.client.resource(workerResource).listAll({ labelSelector: `${labels.pool}=${pool}` })).items
  const command = (pool: string, script: string): StackSpec => ({
    ...{ engine: 'command', pool, source: { inline: { files: { a: '' } } } },
    command: { apply: ['sh', '-c', script] },
  })
  /** A script that records its start and runs until the file `<name>.stop` exists. */
  const untilStopped = (name: string) =>
    `echo begin >> ${directory}/${name}; while [ ! -e ${directory}/${name}.stop ]; do sleep 0.05; done; echo done >> ${directory}/${name}`
  const untilBegun = (name: string) => eventually(() => existsSync(join(directory, name)), `${name} to begin`, 60_000)
  const stop = (name: string) => appendFileSync(join(directory, `${name}.stop`), '')
  const ledgerOf = (name: string) => readFileSync(join(directory, name), 'utf8')

  test('starts the worker that a Run needs; kubectl sees the request, its host and the labels of the host', async () => {
    await createPool('one')
    await stacks.create('first', command('one', untilStopped('first')))
    const pending = await eventually(async () => (await workersOf('one'))[0], 'the worker to be requested')
    deepEqual([pending.status, pending.spec.start], [{ phase: 'Pending' }, true])
    const agent = await startAgent(newHost(), ['--pool', 'one', '--label', 'site=west'])
    await untilBegun('first')
    const worker = await eventually(async () => (await workersOf('one')).find(({ status }) => status?.phase === 'Busy'), 'the worker')
    equal(worker.metadata.uid, pending.metadata.uid)
    equal(worker.metadata.labels?.site, 'west')
    ok(worker.status?.host && worker.status.agent?.startsWith(worker.status.host), JSON.stringify(worker.status))
    const { stdout } = await runOarlock(['get', 'workers', '-o', 'wide', '--kubeconfig', fixture.kubeconfig])
    match(stdout, new RegExp(`${worker.metadata.name} +Busy +\\S+ +\\S+ +default/first-\\S+ +\\S+ +one +${worker.status.host}`))
    stop('first')
    await stacks.untilReady('first')
    await eventually(async () => (await workersOf('one')).length === 0, 'the one-shot worker to end')
    equal(await agent.metric('oarlock_pool_claims_total{outcome="claimed"}'), 1)
    equal(await agent.end('SIGTERM'), 0, agent.output())
  })

  test('after SIGKILL its workers finish their Runs, and the next process adopts them without starting one twice', async () => {
    await createPool('killed')
    const host = newHost()
    const first = await startAgent(host, ['--pool', 'killed'])
    await stacks.create('survivor', command('killed', untilStopped('survivor')))
    await untilBegun('survivor')
    await first.end('SIGKILL')
    const second = await startAgent(host, ['--pool', 'killed'])
    match(second.output(), /1 of them adopted/)
    equal(await second.metric('oarlock_worker_processes'), 1)
    // Two processes on one data directory would adopt each other's workers.
    const third = await runOarlock(['pool', '--kubeconfig', fixture.kubeconfig, '--data', host, '--pool', 'killed'])
    equal(third.code, 7)
    match(third.stderr, /is in use by another "oarlock pool"/)
    stop('survivor')
    await stacks.untilReady('survivor')
    equal(ledgerOf('survivor'), 'begin\ndone\n')
    equal((await stacks.runsOf('survivor')).length, 1)
    await eventually(async () => (await second.metric('oarlock_worker_processes')) === 0, 'the adopted worker to end')
    equal(await second.metric('oarlock_pool_claims_total{outcome="claimed"}'), 0)
  })

  test('a pool keeps its minimum: only workers above it end after idleTimeout', async () => {
    await createPool('kept', { min: 2, idleTimeout: '1s' })
    const agent = await startAgent(newHost(), ['--pool', 'kept'])
    const ready = async () => (await workersOf('kept')).filter(({ status }) => status?.phase === 'Ready')
    await eventually(async () => (await ready()).length === 2, 'two workers', 60_000)
    await fixture.client.resource(workerPoolResource).patch('kept', { spec: { min: 1 } }, { type: 'merge' })
    const [kept] = await eventually(async () => {
      const workers = await workersOf('kept')
      return workers.length === 1 && workers
    }, 'the surplus worker to end')
    const idleTwiceMs = Date.parse(kept!.status?.idleSince ?? '') + 2_000
    await eventually(() => Date.now() > idleTwiceMs, 'the kept worker to be idle for twice the timeout')
    // The Run of a one-shot worker is its last, and the pool then replaces it.
    equal(await agent.metric('oarlock_pool_claims_total{outcome="claimed"}'), 2)
    await stacks.create('on-kept', command('kept', 'true'))
    await stacks.untilReady('on-kept')
    equal((await stacks.runsOf('on-kept'))[0]?.spec.workerName, kept?.metadata.name)
  })

  test('two hosts share a pool: each worker is started once, and neither host exceeds its maximum', async () => {
    await createPool('shared')
    const both = await Promise.all([1, 2].map(() => startAgent(newHost(), ['--pool', 'shared', '--max-workers', '2'])))
    const names = ['s1', 's2', 's3', 's4']
    for (const name of names) await stacks.create(name, command('shared', untilStopped(name)))
    for (const name of names) await untilBegun(name)
    const agentsOf = (await workersOf('shared')).map(({ status }) => status?.agent)
    deepEqual([agentsOf.length, new Set(agentsOf).size], [4, 2])
    for (const name of names) stop(name)
    for (const name of names) await stacks.untilReady(name)
    const claimed = await Promise.all(both.map(agent => agent.metric('oarlock_pool_claims_total{outcome="claimed"}')))
    deepEqual(claimed, [2, 2])
    for (const name of names) equal(ledgerOf(name), 'begin\ndone\n')
  })

  test('SIGTERM lets a Run finish, and no further request is claimed', async () => {
    await createPool('drained')
    const agent = await startAgent(newHost(), ['--pool', 'drained'])
    await stacks.create('last', command('drained', untilStopped('last')))
    await untilBegun('last')
    const ended = agent.end('SIGTERM')
    await eventually(() => /waiting for 1 worker to finish/.test(agent.output()), 'the drain')
    await stacks.create('later', command('drained', 'true'))
    const request = await eventually(
      async () => (await workersOf('drained')).find(({ spec, status }) => spec.start && status?.phase === 'Pending'),
      'a request',
    )
    stop('last')
    equal(await ended, 0)
    await stacks.untilReady('last')
    equal((await fixture.client.resource(workerResource).get(request.metadata.name)).status?.phase, 'Pending')
    const next = await startAgent(newHost(), ['--pool', 'drained'])
    await stacks.untilReady('later')
    equal(await next.metric('oarlock_pool_claims_total{outcome="claimed"}'), 1)
  })

  test('a worker that cannot join fails its request, and the pool reports the reason and backs off', async () => {
    await createPool('rejected')
    const agent = await startAgent(newHost(), ['--pool', 'rejected'])
    fixture.rejectJoins(true)
    await fixture.client.resource(workerPoolResource).patch('rejected', { spec: { min: 1 } }, { type: 'merge' })
    const ready = await eventually(
      async () => {
        const { status } = await fixture.client.resource(workerPoolResource).get('rejected')
        const found = findCondition(status?.conditions, 'Ready')
        return found?.reason === 'CredentialRejected' && found
      },
      'the pool to report the failed start',
      60_000,
    )
    match(ready.message ?? '', /worker \S+ exited with code 5: .*rejected by the test/)
    await fixture.client.resource(workerPoolResource).patch('rejected', { spec: { min: 0 } }, { type: 'merge' })
    await eventually(async () => (await workersOf('rejected')).length === 0, 'the failed request to be deleted')
    ok((await agent.metric('oarlock_worker_processes')) === 0)
    fixture.rejectJoins(false)
  })

  for (const lifecycle of ['Warm', 'OneShot'] as const)
    test(`a registered worker of lifecycle ${lifecycle} that fails before its first Run is a failed start`, async () => {
      const pool = `failing-${lifecycle.toLowerCase()}`
      await createPool(pool, { min: 1, lifecycle })
      const agent = await startAgent(newHost(), ['--pool', pool])
      const isReady = async () => (await workersOf(pool)).find(({ status }) => status?.phase === 'Ready')
      const worker = (await eventually(isReady, 'a worker', 60_000))!
      // It loses its Lease, and ends as fenced.
      const { name } = worker.metadata
      await fixture.client.resource(leaseResource).delete(name, { namespace: systemNamespace })
      const failure = await eventually(
        async () => {
          const { status } = await fixture.client.resource(workerPoolResource).get(pool)
          const found = findCondition(status?.conditions, 'Ready')
          return found?.reason === 'CrashedOnStartup' && found
        },
        'the pool to report the failed start',
        60_000,
      )
      match(failure.message ?? '', new RegExp(`the process of worker ${name} exited with code 3 on host`))
      // After the backoff.
      const next = await eventually(async () => (await workersOf(pool)).find(each => each.metadata.name !== name), 'another worker', 60_000)
      ok(next)
      await eventually(async () => (await workersOf(pool)).every(each => each.metadata.name !== name), 'the failed worker to be deleted')
      await agent.end('SIGTERM')
    })

  test('an invalid option is rejected', async () => {
    mkdirSync(join(directory, 'host0'), { recursive: true })
    for (const [args, message] of [
      [['--label', 'x'], /--label must be key=value, got "x"/],
      [['--health-address', 'nowhere'], /address "nowhere" must be HOST:PORT/],
    ] as [string[], RegExp][]) {
      const { code, stderr } = await runOarlock(['pool', '--kubeconfig', fixture.kubeconfig, '--data', join(directory, 'host0'), ...args])
      equal(code, 2, stderr)
      match(stderr, message)
    }
  })
})
