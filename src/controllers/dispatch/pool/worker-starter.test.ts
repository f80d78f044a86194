import { deepEqual, equal, match } from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as nextIteration } from 'node:timers/promises'
import type { WorkerPool } from '../../../api/index.ts'
import { silentLog } from '../../../kubernetes/controller/index.ts'
import { StatusError } from '../../../kubernetes/object/index.ts'
import type { DispatchContext } from '../dispatch-context.ts'
import { epochMs, testPool, testWorker } from '../objects.testing.ts'
import { type DriverWorker, type PoolDriver, StartError } from './pool-driver.ts'
import { WorkerStarter } from './worker-starter.ts'

/** A starter for one pool. The driver and the API are replaced by records of their calls. */
function setUp({ spec = {}, running = [] }: { spec?: Partial<WorkerPool['spec']>; running?: DriverWorker[] } = {}) {
  const pool = testPool('pool', spec)
  const started: string[] = []
  const stopped: string[] = []
  const events: string[] = []
  const workers = new Set<string>()
  const api = {
    startError: undefined as Error | undefined,
    claimError: undefined as Error | undefined,
    claims: [] as unknown[],
  }
  const driver: PoolDriver = {
    start: async (_, name) => {
      if (api.startError) throw api.startError
      started.push(name)
    },
    running: () => running,
    stop: name => stopped.push(name),
    listen: () => undefined,
  }
  const patchStatus = async (_: string, patch: unknown) => {
    if (api.claimError) throw api.claimError
    api.claims.push(patch)
    return pool
  }
  const context = {
    manager: { leaderClient: { resource: () => ({ patchStatus }) } },
    caches: {
      pools: { get: (name: string) => (name === 'pool' ? pool : undefined), applyLocal: () => undefined },
      workers: { get: (name: string) => (workers.has(name) ? testWorker(name, { pool: 'pool' }) : undefined) },
    },
    poolDrivers: { Process: driver, Pod: driver },
    events: { warning: (_: unknown, reason: string) => events.push(reason) },
    metrics: { startFailed: () => undefined },
    log: silentLog,
    nowMs: () => epochMs,
    random: () => 0.5,
    wake: () => undefined,
  } as unknown as DispatchContext
  const starter = new WorkerStarter(context, [driver])
  const state = () => starter.states.get('pool')!
  return { starter, pool, started, stopped, events, workers, api, state }
}

test('workers of mode Process get a random name and count as starting immediately', async () => {
  const { starter, pool, started, state } = setUp()
  starter.start(pool, 1, epochMs)
  deepEqual(
    state().starting.map(({ name }) => name),
    ['pool-80000000'],
  )
  await nextIteration()
  deepEqual(started, ['pool-80000000'])
})

test('workers of mode Pod are created only after their numbers are claimed', async () => {
  const { starter, pool, started, api } = setUp({ spec: { mode: 'Pod' } })
  starter.start(pool, 2, epochMs)
  equal(starter.isClaiming('pool'), true)
  deepEqual(started, [])
  await nextIteration()
  deepEqual(api.claims, [{ status: { started: 2 } }])
  deepEqual(started, ['pool-uid-p-1', 'pool-uid-p-2'])
  equal(starter.isClaiming('pool'), false)
})

test('creates no Pod when the claim is rejected (invariant 7)', async () => {
  const { starter, pool, started, api, state } = setUp({ spec: { mode: 'Pod' } })
  api.claimError = new StatusError('Conflict', 'the object has been modified')
  starter.start(pool, 2, epochMs)
  await nextIteration()
  deepEqual([started, state().starting, state().failures], [[], [], 0])
})

for (const { exitCode, reason, message } of [
  { exitCode: 2, reason: 'CreateFailed', message: /exited with code 2 before it registered/ },
  { exitCode: 4, reason: 'RegistrationFailed', message: /exited with code 4 before it registered/ },
  { exitCode: 5, reason: 'CredentialRejected', message: /exited with code 5 before it registered/ },
  { exitCode: 1, reason: 'CrashedOnStartup', message: /exited with code 1 before it registered/ },
  { exitCode: undefined, reason: 'CrashedOnStartup', message: /was killed before it registered/ },
]) {
  test(`a starting worker that exits with code ${exitCode} fails with reason ${reason}`, () => {
    const { starter, pool, events, state } = setUp()
    starter.start(pool, 1, epochMs)
    starter.exited('pool-80000000', exitCode, undefined)
    equal(state().lastFailure?.reason, reason)
    match(state().lastFailure?.message ?? '', message)
    deepEqual(events, [reason])
  })
}

test('a registered worker that exits with code 0 without a Run is no failure', () => {
  const { starter, pool, state } = setUp()
  starter.start(pool, 1, epochMs)
  starter.registered('pool', 'pool-80000000')
  starter.exited('pool-80000000', 0, undefined)
  deepEqual([state().failures, state().unproven], [0, []])
})

test('the reason of a StartError is reported; any other error is CreateFailed', async () => {
  const quota = setUp()
  quota.api.startError = new StartError({ reason: 'QuotaExceeded', message: 'exceeded quota' })
  quota.starter.start(quota.pool, 1, epochMs)
  await nextIteration()
  deepEqual(quota.state().lastFailure, { reason: 'QuotaExceeded', message: 'exceeded quota' })
  const missing = setUp()
  missing.api.startError = new Error('spawn ENOENT')
  missing.starter.start(missing.pool, 1, epochMs)
  await nextIteration()
  deepEqual(missing.state().lastFailure, { reason: 'CreateFailed', message: 'failed to start worker pool-80000000: spawn ENOENT' })
})

test('stops workers that have not registered within startTimeout', () => {
  const { starter, pool, stopped, state } = setUp({ spec: { startTimeout: '5s' } })
  starter.start(pool, 1, epochMs)
  equal(starter.nextTimeoutMs(), epochMs + 5_000)
  starter.expire(epochMs + 4_999)
  deepEqual(stopped, [])
  starter.expire(epochMs + 5_000)
  deepEqual([stopped, state().lastFailure?.reason], [['pool-80000000'], 'RegistrationFailed'])
  equal(starter.nextTimeoutMs(), Infinity)
})

test('adopts running workers of a previous leader that are not registered, with their start time', () => {
  const running = ['registered', 'starting'].map(name => ({ name, pool: 'pool', startedMs: epochMs - 10_000 }))
  const { starter, workers, state } = setUp({ running })
  workers.add('registered')
  starter.adopt()
  deepEqual(state().starting, [{ name: 'starting', sinceMs: epochMs - 10_000 }])
})
