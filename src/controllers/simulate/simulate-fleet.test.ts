import { deepEqual, equal, notDeepEqual, ok, throws } from 'node:assert/strict'
import { test } from 'node:test'
import { WorkerInventory } from '../dispatch/index.ts'
import { settingsOf } from '../stack/index.ts'
import { Simulator } from '../stack/simulator.testing.ts'
import { defaultProfile, parseSimulationProfile, simulateFleet, simulateSizes } from './index.ts'
import { afterRun, makeStackLoad } from './stack-load.ts'
import { WorkerFleet } from './worker-fleet.ts'

const quiet = parseSimulationProfile({
  phases: { planning: '60s' },
  changesPerStackPerDay: 0,
  failureShare: 0,
  workerStart: '10s',
})
const fleet = { stacks: 200, tenants: 5, intervalMs: 3_600_000, profile: defaultProfile, hours: 6 }

test('the same seed gives the same result, also on another thread; another seed gives another result', async () => {
  const one = simulateFleet(fleet, { max: 5 })
  deepEqual(simulateFleet(fleet, { max: 5 }), one)
  const [, two] = await simulateSizes(fleet, {}, [4, 5])
  deepEqual(two, one)
  notDeepEqual(simulateFleet({ ...fleet, seed: 2 }, { max: 5 }), one)
})

test('new Stacks run in waves of the size of the pool', () => {
  // 4 workers start at 0 and get Runs at 10 s. Each wave takes 60 s; a one-shot worker is replaced in 10 s.
  const spec = { stacks: 12, intervalMs: undefined, profile: quiet, hours: 1, initialState: 'New' as const }
  const oneShot = simulateFleet(spec, { max: 4 })
  equal(oneShot.lastEndMs, 3 * 70_000)
  deepEqual([oneShot.wait.all.p50Ms, oneShot.wait.all.maxMs, oneShot.workers.runStarted, oneShot.workers.peak], [80_000, 150_000, 12, 4])
  equal(oneShot.workerHours, (12 * 70_000) / 3_600_000)
  const warm = simulateFleet(spec, { max: 4, lifecycle: 'Warm', idleTimeout: '5m' })
  equal(warm.lastEndMs, 10_000 + 3 * 60_000)
  // All four are drained five minutes after their last Run.
  equal(warm.workerHours, (4 * (190_000 + 300_000)) / 3_600_000)
  const slots = simulateFleet(spec, { max: 4, slots: 3 })
  deepEqual([slots.lastEndMs, slots.workers.runStarted], [70_000, 4])
})

test('drift checks run once per interval ±10%, and a pool that is too small falls behind', () => {
  const spec = { stacks: 100, intervalMs: 3_600_000, profile: quiet, hours: 24 }
  const enough = simulateFleet(spec, { max: 20 })
  ok(Math.abs(enough.runEnded / (100 * 24 * (3_600 / 3_670)) - 1) < 0.02, `${enough.runEnded} Runs`)
  equal(enough.wait.DriftCheck.p50Ms, 10_000)
  const tooSmall = simulateFleet(spec, { max: 1 })
  equal(tooSmall.workers.peak, 1)
  ok(tooSmall.queuedAtEnd > 20 && tooSmall.wait.DriftCheck.p50Ms > 30 * 60_000)
})

test('changes take precedence over drift checks and wait less in a pool that is too small', () => {
  const { wait } = simulateFleet({ ...fleet, stacks: 500 }, { max: 5 })
  ok(wait.Change.p50Ms < wait.DriftCheck.p50Ms / 5, JSON.stringify(wait))
})

test('where the simulation skips sizing the pool, the decision would be to start no worker', () => {
  for (const { max, min, started } of [
    { max: 3, min: 0, started: 3 },
    { max: 9, min: 2, started: 2 },
    { max: 9, min: 0, started: 0 },
  ]) {
    const workers = new WorkerFleet({ mode: 'Process', max, min }, new WorkerInventory(), 0)
    const names = Array.from({ length: started }, () => workers.start(0))
    for (const startable of started === max ? [0, 1, 50] : [0]) {
      equal(workers.size(startable, 0).start, 0)
      for (const name of names.splice(0, 1)) workers.register(name, 0)
      equal(workers.size(startable, 0).start, 0)
    }
  }
})

test('a Stack is due when decideStack decides so: drift checks, and retries up to the limit', () => {
  const retry = { limit: 2, initial: '5s', max: '1m' }
  const load = makeStackLoad(0, 0, 0)
  load.cause = 'Change'
  const settings = settingsOf({ engine: 'terraform', source: {}, interval: '1h', retry })
  const simulator = new Simulator()
  simulator.put('app', { interval: '1h', retry })
  for (const isFailed of [false, false, true, true, false, true, true, true]) {
    ok(simulator.activeRun('app'), 'the Stack has a Run')
    simulator.report('app', isFailed ? 'Failed' : 'Succeeded', isFailed ? { reason: 'ApplyFailed' } : { changed: false })
    const next = afterRun(load, isFailed, settings, 0)
    const { nextRunAt } = simulator.stacks()[0]?.status ?? {}
    equal(
      nextRunAt === undefined,
      next === undefined,
      `after ${isFailed ? 'a failed' : 'a successful'} Run: ${nextRunAt}, ${JSON.stringify(next)}`,
    )
    if (!next) break
    const lastEnd = simulator.runsOf('app').at(-1)?.status?.finishedAt ?? ''
    // The jitter of another uid differs by up to 20% of the interval; a retry is exact.
    const toleranceMs = next.cause === 'DriftCheck' && !isFailed ? 0.2 * 3_600_000 : 0
    const dueInMs = Date.parse(nextRunAt!) - Date.parse(lastEnd)
    ok(Math.abs(dueInMs - next.atMs) <= toleranceMs, `due in ${dueInMs} ms, simulated ${next.atMs} ms`)
    load.cause = next.cause
    simulator.advance(dueInMs)
  }
})

test('rejects invalid numbers with the allowed range', () => {
  throws(() => simulateFleet({ ...fleet, stacks: 0 }, { max: 1 }), /stacks must be an integer >= 1, got 0/)
  throws(() => simulateFleet({ ...fleet, tenants: 201 }, { max: 1 }), /tenants must be .* got 201/)
  throws(() => simulateFleet(fleet, { max: 1.5 }), /max must be/)
})
