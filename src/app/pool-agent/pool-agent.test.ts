import { deepEqual, equal, match, ok } from 'node:assert/strict'
import { after, afterEach, before, test } from 'node:test'
import { eventually } from '../../../test/support/eventually.ts'
import { labels, oarlockResources, type Worker, workerPoolResource, workerResource } from '../../api/index.ts'
import type { DriverListener, ExitFailure } from '../../controllers/dispatch/index.ts'
import { Manager, silentLog } from '../../kubernetes/controller/index.ts'
import { startTestServer, type TestServer } from '../../kubernetes/testing/index.ts'
import { agentCaches, type ClaimOutcome, PoolAgent } from './pool-agent.ts'

let api: TestServer
const closings: (() => Promise<void>)[] = []
const workers = () => api.client.resource(workerResource)
const statusOf = async (name: string) => (await workers().getOrUndefined(name))?.status
const untilPhase = (name: string, phase: string) =>
  eventually(async () => (await statusOf(name))?.phase === phase, `${name} to be ${phase}`)
const request = async (name: string, status?: Partial<NonNullable<Worker['status']>>) => {
  const metadata = { name, labels: { [labels.pool]: 'pool' } }
  await workers().create({ metadata, spec: { pool: 'pool', slots: 3, lifecycle: 'Warm', start: true } })
  if (status) await workers().patchStatus(name, { status })
}

before(async () => {
  api = await startTestServer({ kinds: oarlockResources })
  await api.client.resource(workerPoolResource).create({ metadata: { name: 'pool' }, spec: { mode: 'Process' } })
})
afterEach(async () => {
  for (const close of closings.splice(0)) await close()
  for (const { metadata } of (await workers().listAll()).items) await workers().delete(metadata.name)
})
after(async () => await api.close())

/** An agent whose processes are a record of the calls. */
async function startAgent({ agent = 'a', maxWorkers = 10, running = [] as string[], startError = undefined as Error | undefined } = {}) {
  const manager = new Manager({ client: api.client, log: silentLog })
  const started: string[] = []
  const stopped: string[] = []
  const outcomes: ClaimOutcome[] = []
  let listener: DriverListener | undefined
  const processes = {
    start: async ({ spec }: { spec: { slots?: number; lifecycle?: string } }, name: string) => {
      if (startError) throw startError
      started.push(name)
      running.push(name)
      deepEqual([spec.slots, spec.lifecycle], [3, 'Warm'])
    },
    running: () => running.map(name => ({ name, pool: 'pool' })),
    stop: (name: string, { force }: { force: boolean }) => void stopped.push(`${name} ${force}`),
    listen: (given: DriverListener) => {
      listener = given
    },
  }
  const poolAgent = new PoolAgent({
    ...{ manager, processes, agent, maxWorkers, host: `host-${agent}`, log: silentLog, served: new Set(['pool']), nowMs: Date.now },
    ...agentCaches(manager, ['pool']),
    prepare: async () => {},
    onClaim: outcome => outcomes.push(outcome),
  })
  await manager.start()
  closings.push(async () => {
    await poolAgent.drain()
    poolAgent.close()
    await manager.stop()
  })
  const exit = (name: string, code: number | undefined, failure?: ExitFailure) => {
    running.splice(running.indexOf(name), 1)
    listener?.exited(name, code, failure)
  }
  return { started, stopped, outcomes, exit, poolAgent }
}

test('claims a request and starts a process with the slots and the lifecycle of the request', async () => {
  const { started, outcomes } = await startAgent()
  await request('w')
  await eventually(() => started.length === 1 && outcomes.length === 1, 'the start')
  deepEqual([started, outcomes, await statusOf('w')], [['w'], ['claimed'], { phase: 'Starting', agent: 'a', host: 'host-a' }])
})

test('two agents that share a pool start each worker once, and claim no more than they have room for', async () => {
  const agents = await Promise.all(['a', 'b'].map(agent => startAgent({ agent, maxWorkers: 6 })))
  const names = Array.from({ length: 14 }, (_, index) => `w${index}`)
  await Promise.all(names.map(name => request(name)))
  const started = () => agents.flatMap(agent => agent.started)
  await eventually(() => started().length === 12, 'both agents to be full')
  for (const { poolAgent } of agents) await poolAgent.settled()
  equal(new Set(started()).size, 12)
  deepEqual(
    agents.map(agent => agent.started.length),
    [6, 6],
  )
  agents[0]!.exit(agents[0]!.started[0]!, undefined)
  await eventually(() => started().length === 13, 'a request to be claimed once there is room')
})

test('reports a process that could not be started', async () => {
  const { outcomes } = await startAgent({ startError: new Error('spawn ENOENT') })
  await request('w')
  await untilPhase('w', 'Failed')
  const { reason, message, exitCode } = (await statusOf('w'))!
  deepEqual([reason, message, exitCode], ['CreateFailed', 'failed to start worker w on host host-a: spawn ENOENT', undefined])
  deepEqual(outcomes, ['failed'])
})

test('reports the exit code of a process that ends before it registers, even if the cache is behind', async () => {
  const { started, exit } = await startAgent()
  await request('failing')
  await request('finished')
  await eventually(() => started.length === 2, 'the starts')
  await workers().patchStatus('finished', { status: { phase: 'Ready' } })
  exit('failing', 5)
  exit('finished', 0)
  await untilPhase('failing', 'Failed')
  const { message, exitCode } = (await statusOf('failing'))!
  deepEqual([exitCode, message], [5, 'the process of worker failing exited with code 5 on host host-a'])
  equal((await statusOf('finished'))?.phase, 'Ready')
})

test('reports that a registered worker has crashed, without its output', async () => {
  const { started, exit } = await startAgent()
  await request('w')
  await eventually(() => started.length === 1, 'the start')
  await workers().patchStatus('w', { status: { phase: 'Busy' } })
  exit('w', undefined, { message: 'output', crash: { reason: 'WorkerCrashed', message: 'worker w was ended by SIGSEGV' } })
  await untilPhase('w', 'Failed')
  const { reason, message } = (await statusOf('w'))!
  deepEqual([reason, message], ['WorkerCrashed', 'worker w was ended by SIGSEGV'])
})

test('after a restart keeps a claim whose process runs, and fails one that has none', async () => {
  await request('adopted', { phase: 'Starting', agent: 'a' })
  await request('not-started', { phase: 'Starting', agent: 'a' })
  await request('of-another', { phase: 'Starting', agent: 'b' })
  const { started, poolAgent } = await startAgent({ running: ['adopted'] })
  await untilPhase('not-started', 'Failed')
  match((await statusOf('not-started'))!.message!, /"oarlock pool" on host host-a ended before it started worker not-started/)
  await poolAgent.settled()
  deepEqual(started, [])
  for (const name of ['adopted', 'of-another']) equal((await statusOf(name))?.phase, 'Starting')
})

test('stops the process of a request that is withdrawn, but not that of a registered worker', async () => {
  const { started, stopped } = await startAgent()
  await request('withdrawn')
  await request('registered')
  await eventually(() => started.length === 2, 'the starts')
  await workers().patchStatus('registered', { status: { phase: 'Ready' } })
  await workers().delete('registered')
  await workers().delete('withdrawn')
  await eventually(() => stopped.length > 0, 'the process to be stopped')
  deepEqual(stopped, ['withdrawn false'])
})

test('claims nothing while it drains', async () => {
  const { started, poolAgent } = await startAgent()
  await poolAgent.drain()
  const other = await startAgent({ agent: 'b' })
  await request('w')
  await eventually(() => other.started.length === 1, 'the other agent to claim it')
  ok(!started.includes('w'))
})
