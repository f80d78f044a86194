/** Known failures of other autoscalers, each simulated on virtual time with the real deciders. */
import { deepEqual, equal, ok } from 'node:assert/strict'
import { test } from 'node:test'
import { PoolSimulation } from './pool-simulation.testing.ts'
import type { StartFailure } from './start-state.ts'

/** ceil(currentReplicas * currentMetricValue / desiredMetricValue): the formula of the HorizontalPodAutoscaler with a target of type Value. */
const hpaReplicas = (replicas: number, value: number, target: number) => Math.ceil(replicas * (value / target))

test('30 busy one-shot runners and one more Run: one worker is started, where an HPA with a Value target asks for 930', () => {
  const simulation = new PoolSimulation({ runMs: 3_600_000 })
  simulation.submit(30)
  simulation.advance(60_000)
  deepEqual([simulation.workers, simulation.busy], [30, 30])
  simulation.submit(1)
  simulation.advance(60_000)
  deepEqual([simulation.workers, simulation.busy, simulation.started], [31, 31, 31])
  equal(hpaReplicas(simulation.workers - 1, simulation.workers, 1), 930)
  simulation.advance(1_800_000)
  deepEqual([simulation.peak, simulation.started], [31, 31])
})

test('no busy worker is drained, even when max is lowered to 0', () => {
  const simulation = new PoolSimulation({ spec: { lifecycle: 'Warm', slots: 2, idleTimeout: '10s' }, runMs: 600_000 })
  simulation.submit(20)
  simulation.advance(30_000)
  equal(simulation.busy, 10)
  simulation.pool.spec.max = 0
  simulation.advance(500_000)
  deepEqual([simulation.busy, simulation.interrupted], [10, 0])
  simulation.advance(200_000)
  deepEqual([simulation.workers, simulation.finished, simulation.interrupted], [0, 20, 0])
})

test('demand is counted once when Pods are slow to start: four minutes of starting cause no second Pod', () => {
  const simulation = new PoolSimulation({ startMs: 240_000, registerWithinMs: 600_000, runMs: 600_000 })
  simulation.submit(10)
  // Each decision stands for a scrape or a resync of another autoscaler.
  for (let i = 0; i < 200; i++) {
    simulation.advance(1_000)
    simulation.decide()
  }
  deepEqual([simulation.started, simulation.starting, simulation.queued], [10, 10, 10])
  simulation.submit(2)
  equal(simulation.started, 12)
  simulation.advance(300_000)
  deepEqual([simulation.started, simulation.busy, simulation.queued], [12, 12, 0])
})

test('hundreds of failed starts take no capacity from the pool', () => {
  let isBroken = true
  const failure: StartFailure = { reason: 'ImagePullFailed', message: 'no such image' }
  const simulation = new PoolSimulation({ spec: { max: 5 }, failsWith: () => (isBroken ? failure : undefined), runMs: 1_000 })
  simulation.submit(50)
  simulation.advance(4 * 3_600_000)
  equal(simulation.finished, 0)
  ok(simulation.started > 100 && simulation.started < 300, `at most one start a minute, got ${simulation.started} in four hours`)
  deepEqual([simulation.workers, simulation.starting], [0, 0])
  equal(simulation.starts.lastFailure?.reason, 'ImagePullFailed')
  isBroken = false
  simulation.advance(300_000)
  deepEqual([simulation.finished, simulation.queued, simulation.starts.failures], [50, 0, 0])
  equal(simulation.peak, 5)
})

test('workers that never register take capacity only until their start times out', () => {
  let isBroken = true
  const simulation = new PoolSimulation({
    spec: { max: 2 },
    startMs: () => (isBroken ? Number.POSITIVE_INFINITY : 1_000),
    registerWithinMs: 30_000,
    runMs: 1_000,
  })
  simulation.submit(4)
  equal(simulation.starting, 2)
  simulation.advance(30_500)
  deepEqual([simulation.starting, simulation.starts.failures], [0, 1])
  isBroken = false
  simulation.advance(30_000)
  deepEqual([simulation.finished, simulation.queued], [4, 0])
})

test('after failed starts a single worker is started; when it succeeds the others follow immediately', () => {
  const simulation = new PoolSimulation({
    failsWith: number => (number <= 8 ? { reason: 'QuotaExceeded', message: 'exceeded quota' } : undefined),
  })
  simulation.submit(8)
  simulation.advance(200_000)
  equal(simulation.history[0], '0s start 8')
  equal(simulation.history[1], '1s start 1')
  equal(simulation.history[2], '2s start 7')
})

test('scales to zero and back: no worker remains, and the next Run needs one start', () => {
  const simulation = new PoolSimulation({ spec: { lifecycle: 'Warm', idleTimeout: '5m' }, runMs: 30_000 })
  simulation.submit(3)
  simulation.advance(60_000)
  deepEqual([simulation.workers, simulation.busy], [3, 0])
  simulation.advance(300_000)
  equal(simulation.workers, 0)
  simulation.advance(24 * 3_600_000)
  deepEqual([simulation.workers, simulation.started], [0, 3])
  simulation.submit(1)
  simulation.advance(1_000)
  deepEqual([simulation.busy, simulation.started], [1, 4])
})

test('hysteresis: a load that fluctuates within the idle timeout starts no further workers', () => {
  const simulation = new PoolSimulation({ spec: { lifecycle: 'Warm', idleTimeout: '5m' }, runMs: 10_000 })
  for (let minute = 0; minute < 60; minute++) {
    simulation.submit(4)
    simulation.advance(60_000)
  }
  deepEqual([simulation.started, simulation.workers, simulation.finished], [4, 4, 240])
})

test('a restart of the controller loses no slot: starting workers count, busy ones continue, and none is started twice', () => {
  const simulation = new PoolSimulation({ startMs: 60_000, registerWithinMs: 600_000, runMs: 120_000 })
  simulation.submit(5)
  simulation.advance(30_000)
  simulation.restartController()
  equal(simulation.started, 5)
  simulation.advance(60_000)
  simulation.restartController()
  deepEqual([simulation.started, simulation.busy, simulation.queued], [5, 5, 0])
  simulation.advance(120_000)
  deepEqual([simulation.finished, simulation.workers, simulation.starting, simulation.started], [5, 0, 0, 5])
})

test('a restart during a backoff does not block the pool', () => {
  const simulation = new PoolSimulation({
    failsWith: number => (number === 1 ? { reason: 'CreateFailed', message: 'ENOENT' } : undefined),
    runMs: 1_000,
  })
  simulation.submit(1)
  simulation.restartController()
  simulation.advance(10_000)
  deepEqual([simulation.finished, simulation.queued], [1, 0])
})

test('a burst with workers that are killed: max is never exceeded, and all Runs finish', () => {
  const simulation = new PoolSimulation({ spec: { max: 20 }, runMs: 20_000 })
  simulation.submit(100)
  for (let i = 0; i < 10; i++) {
    simulation.advance(7_000)
    simulation.kill(3)
  }
  simulation.advance(600_000)
  deepEqual([simulation.finished, simulation.queued, simulation.workers, simulation.starting], [100, 0, 0, 0])
  equal(simulation.peak, 20)
})

test('without queued Runs no worker is started', () => {
  const simulation = new PoolSimulation()
  simulation.advance(24 * 3_600_000)
  deepEqual([simulation.started, simulation.workers, simulation.starting], [0, 0, 0])
})

test('a schedule starts its minimum when the window opens, and drains the workers after it closes', () => {
  // The simulation begins on Monday, 1 June 2026, 10:00 UTC.
  const window = { from: '12:00', to: '13:00', min: 3 }
  const simulation = new PoolSimulation({ spec: { lifecycle: 'Warm', idleTimeout: '5m', schedule: [window] }, startMs: 1_000 })
  simulation.advance(2 * 3_600_000 - 1)
  equal(simulation.started, 0)
  simulation.advance(2_000)
  deepEqual([simulation.workers, simulation.started], [3, 3])
  simulation.advance(3_600_000)
  deepEqual([simulation.workers, simulation.started], [0, 3])
})
