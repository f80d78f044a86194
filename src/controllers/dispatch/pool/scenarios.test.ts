/** What other scalers are known to get wrong, each on virtual time with the real deciders. The names say what happened there. */
import { deepEqual, equal, ok } from 'node:assert/strict'
import { test } from 'node:test'
import { PoolSimulation } from './pool-simulation.testing.ts'
import type { StartFailure } from './start-state.ts'

test('30 busy one-shot runners × HPA → 900: here the number that is wanted never multiplies the number that is there', () => {
  // HorizontalPodAutoscaler: ceil(present * value / target), where `present` are the 30 that cannot take a job any more.
  const naive = Math.ceil(30 * (30 / 1))
  equal(naive, 900)
  const world = new PoolSimulation({ runMs: 3_600_000 })
  world.submit(30)
  world.advance(60_000)
  deepEqual([world.workers, world.busy], [30, 30])
  world.submit(1)
  world.advance(60_000)
  deepEqual([world.workers, world.busy, world.started], [31, 31, 31])
  world.advance(1_800_000)
  deepEqual([world.peak, world.started], [31, 31])
})

test('a scaler that kills busy workers: none is let go that has a Run, whatever the pool says', () => {
  const world = new PoolSimulation({ spec: { lifecycle: 'Warm', slots: 2, idleTimeout: '10s' }, runMs: 600_000 })
  world.submit(20)
  world.advance(30_000)
  equal(world.busy, 10)
  world.pool.spec.max = 0
  world.advance(500_000)
  deepEqual([world.busy, world.interrupted], [10, 0])
  world.advance(200_000)
  deepEqual([world.workers, world.finished, world.interrupted], [0, 20, 0])
})

test('demand counted twice when pods are slow to start: four minutes of starting lead to no second Pod', () => {
  const world = new PoolSimulation({ startMs: 240_000, registerWithinMs: 600_000, runMs: 600_000 })
  world.submit(10)
  // Each of these wakes the controller, as scrapes and resyncs do elsewhere.
  for (let i = 0; i < 200; i++) {
    world.advance(1_000)
    world.decide()
  }
  deepEqual([world.started, world.starting, world.queued], [10, 10, 10])
  world.submit(2)
  equal(world.started, 12)
  world.advance(300_000)
  deepEqual([world.started, world.busy, world.queued], [12, 12, 0])
})

test('failed runners that eat capacity: hundreds of failures leave the pool as able as before', () => {
  let isBroken = true
  const failure: StartFailure = { reason: 'ImagePullFailed', message: 'no such image' }
  const world = new PoolSimulation({ spec: { max: 5 }, failsWith: () => (isBroken ? failure : undefined), runMs: 1_000 })
  world.submit(50)
  world.advance(4 * 3_600_000)
  equal(world.finished, 0)
  ok(world.started > 100 && world.started < 300, `one try a minute at most: ${world.started} in four hours`)
  deepEqual([world.workers, world.starting], [0, 0])
  equal(world.starts.lastFailure?.reason, 'ImagePullFailed')
  isBroken = false
  world.advance(300_000)
  deepEqual([world.finished, world.queued, world.starts.failures], [50, 0, 0])
  ok(world.peak <= 5)
})

test('runners that never come up eat capacity until their time is over, and then no longer', () => {
  let isBroken = true
  const world = new PoolSimulation({
    spec: { max: 2 },
    startMs: () => (isBroken ? Number.POSITIVE_INFINITY : 1_000),
    registerWithinMs: 30_000,
    runMs: 1_000,
  })
  world.submit(4)
  equal(world.starting, 2)
  world.advance(30_500)
  deepEqual([world.starting, world.starts.failures], [0, 1])
  isBroken = false
  world.advance(30_000)
  deepEqual([world.finished, world.queued], [4, 0])
})

test('after failed starts one worker is tried, not all of them; when it works the others follow at once', () => {
  const world = new PoolSimulation({
    failsWith: number => (number <= 8 ? { reason: 'QuotaExceeded', message: 'exceeded quota' } : undefined),
  })
  world.submit(8)
  world.advance(200_000)
  equal(world.history[0], '0s start 8')
  equal(world.history[1], '1s start 1')
  equal(world.history[2], '2s start 7')
})

test('scale to zero and back: nothing stays, and the next Run has its worker after one start', () => {
  const world = new PoolSimulation({ spec: { lifecycle: 'Warm', idleTimeout: '5m' }, runMs: 30_000 })
  world.submit(3)
  world.advance(60_000)
  deepEqual([world.workers, world.busy], [3, 0])
  world.advance(300_000)
  equal(world.workers, 0)
  world.advance(24 * 3_600_000)
  deepEqual([world.workers, world.started], [0, 3])
  world.submit(1)
  world.advance(1_000)
  deepEqual([world.busy, world.started], [1, 4])
})

test('hysteresis: a load that comes and goes within the idle timeout starts no second worker', () => {
  const world = new PoolSimulation({ spec: { lifecycle: 'Warm', idleTimeout: '5m' }, runMs: 10_000 })
  for (let minute = 0; minute < 60; minute++) {
    world.submit(4)
    world.advance(60_000)
  }
  deepEqual([world.started, world.workers, world.finished], [4, 4, 240])
})

test('a restart of the controller strands no slot: what was starting counts, what worked goes on, nothing is made twice', () => {
  const world = new PoolSimulation({ startMs: 60_000, registerWithinMs: 600_000, runMs: 120_000 })
  world.submit(5)
  world.advance(30_000)
  world.restartController()
  equal(world.started, 5)
  world.advance(60_000)
  world.restartController()
  deepEqual([world.started, world.busy, world.queued], [5, 5, 0])
  world.advance(120_000)
  deepEqual([world.finished, world.workers, world.starting, world.started], [5, 0, 0, 5])
})

test('a restart in the middle of a backoff does not hold up the pool for ever', () => {
  const world = new PoolSimulation({
    failsWith: number => (number === 1 ? { reason: 'CreateFailed', message: 'ENOENT' } : undefined),
    runMs: 1_000,
  })
  world.submit(1)
  world.restartController()
  world.advance(10_000)
  deepEqual([world.finished, world.queued], [1, 0])
})

test('a burst, workers that die under it, and the end: no worker too many at any time', () => {
  const world = new PoolSimulation({ spec: { max: 20 }, runMs: 20_000 })
  world.submit(100)
  for (let i = 0; i < 10; i++) {
    world.advance(7_000)
    world.kill(3)
  }
  world.advance(600_000)
  deepEqual([world.finished, world.queued, world.workers, world.starting], [100, 0, 0, 0])
  equal(world.peak, 20)
})

test('1,000 idle Stacks with scale to zero: nothing queued is no worker, not one', () => {
  const world = new PoolSimulation()
  world.advance(24 * 3_600_000)
  deepEqual([world.started, world.workers, world.starting], [0, 0, 0])
})

test('a warm minimum by schedule: workers are there when the office opens, and gone after it closes', () => {
  // The world begins on Monday, 1 June 2026, 10:00 UTC.
  const window = { from: '12:00', to: '13:00', min: 3 }
  const world = new PoolSimulation({ spec: { lifecycle: 'Warm', idleTimeout: '5m', schedule: [window] }, startMs: 1_000 })
  world.advance(2 * 3_600_000 - 1)
  equal(world.started, 0)
  world.advance(2_000)
  deepEqual([world.workers, world.started], [3, 3])
  world.advance(3_600_000)
  deepEqual([world.workers, world.started], [0, 3])
})
